"""Launching without a pause: two map sets in turn, each launch reduced while the next runs."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import Batch, Reduced, Reduction
from gpuwatch.device.cuda.kernel import CudaKernel, Instance, fault, hung, wait_for
from gpuwatch.device.cuda.memory import MapMemory
from gpuwatch.device.cuda.module import DriverError
from gpuwatch.device.cuda.reduction import Reducer

_AHEAD_SECONDS = 0.02
"""Work in the queue: enough while the host reads and draws a frame, little enough that a switch
is at once."""
_LEAST_AHEAD, _MOST_AHEAD = 4, 100
_KNOWN_PAIRS = 40
_SELDOM = 4
"""After so many timed pairs, plain launches come so many times less often."""
_NAP_SECONDS = 0.00005


@dataclass(slots=True)
class _Set:
    """An instance of the kernel, its maps, and when they are free for the next launch."""

    instance: Instance
    arguments: Any
    ready: Any
    free: Any


@dataclass(slots=True)
class _Flight:
    """A launch that is under way; `done` is recorded behind its reduction."""

    done: Any
    timed: tuple[Any, Any] | None = None
    plain: tuple[Any, Any] | None = None
    copied: bool = False


@dataclass(slots=True)
class _Gathered:
    launches: int = 0
    probed: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    fresh: bool = False


class CudaPipeline:
    """See `Pipeline`. One launch in `plain_every` is followed by a plain one, both timed while
    nothing else runs; less often once their ratio is known well.

    Kernels run in one stream; reductions, copies and the clearing of maps in another, so that
    they overlap with the next launch. `max_rate` is in launches a second, 0 for no limit.
    """

    def __init__(
        self,
        probed: CudaKernel,
        plain: CudaKernel,
        reduction: Reduction,
        cubin: bytes,
        sms: int,
        *,
        plain_every: int,
        max_rate: float,
    ) -> None:
        driver = self._driver = probed.driver
        self._probed, self._plain = probed, plain
        self._plain_every = plain_every
        self._pause = 1.0 / max_rate if max_rate else 0.0
        self._reducer = Reducer(driver, cubin, reduction, sms)
        self._kernels, self._after = driver.Stream(), driver.Stream()
        self._sets = [self._make_set() for _ in range(2)]
        maps = self._sets[0].instance.maps
        self._host: NDArray[np.uint8] = driver.pagelocked_empty(maps.cleared_bytes, np.uint8)
        self._flights: deque[_Flight] = deque()
        self._events: list[Any] = []
        self._count = 0
        self._pairs = 0
        self._until_plain = 0
        self._ahead = _LEAST_AHEAD
        self._next = 0.0
        self._moved = 0.0
        """When a launch was last seen to end."""

    def _make_set(self) -> _Set:
        one = self._probed
        sizes = (*one.map_buffers, self._reducer.scratch_bytes)
        maps = MapMemory(self._driver, sizes, one.fixed)
        maps.clear(self._after)
        instance = Instance(self._driver, one.image, one.launch, one.memory, maps)
        places = [maps.address(index) for index in range(len(sizes))]
        arguments = self._reducer.prepare(places[:-1], places[-1])
        ready, free = self._event(), self._event()
        free.record(self._after)
        return _Set(instance, arguments, ready, free)

    def _event(self) -> Any:
        return self._driver.Event(self._driver.event_flags.DISABLE_TIMING)

    def advance(self, until: float) -> Batch:
        gathered = _Gathered()
        wanted = True
        self._moved = time.monotonic()
        try:
            while time.monotonic() < until or not gathered.fresh:
                self._retire(gathered)
                if len(self._flights) < self._ahead and time.monotonic() >= self._next:
                    self._enqueue(copied=wanted)
                    wanted = False
                else:
                    time.sleep(_NAP_SECONDS)
        except (self._driver.Error, DriverError) as problem:
            raise fault(self._probed.launch, problem) from problem
        return Batch(
            gathered.launches, tuple(gathered.probed), tuple(gathered.plain), gathered.fresh
        )

    def reduced(self) -> Reduced:
        return self._reducer.read()

    def reset(self) -> None:
        self._reducer.clear(self._after)

    def read_map(self, index: int) -> NDArray[np.uint8]:
        maps = self._sets[0].instance.maps
        return maps.part(self._host, index)

    def settle(self) -> None:
        for flight in self._flights:
            wait_for(flight.done, self._probed.timeout)
        self._kernels.synchronize()

    def close(self) -> None:
        """Waits for what is under way, then frees."""
        self.settle()
        for one in self._sets:
            one.instance.close()
        self._reducer.close()

    def _enqueue(self, *, copied: bool) -> None:
        one = self._sets[self._count % len(self._sets)]
        timed = self._until_plain == 0
        flight = _Flight(self._take_event(), copied=copied)
        self._kernels.wait_for_event(one.free)
        if timed:
            self._be_alone()
        self._probed.memory.restore(self._kernels)
        flight.timed = self._launch(one.instance.prepared, timed)
        one.ready.record(self._kernels)
        self._reduce(one, copied)
        if timed:
            self._be_alone()
            self._plain.memory.restore(self._kernels)
            flight.plain = self._launch(self._plain.prepared, timed)
            self._pairs += 1
            self._until_plain = self._plain_every
            if self._pairs > _KNOWN_PAIRS:
                self._until_plain *= _SELDOM
        flight.done.record(self._after)
        self._flights.append(flight)
        self._count += 1
        self._until_plain -= 1
        self._next = time.monotonic() + self._pause

    def _be_alone(self) -> None:
        """Lets the next kernel start only when no reduction runs."""
        for one in self._sets:
            self._kernels.wait_for_event(one.free)

    def _launch(self, prepared: Any, timed: bool) -> tuple[Any, Any] | None:
        if not timed:
            prepared.start(self._kernels)
            return None
        begin, end = self._driver.Event(), self._driver.Event()
        begin.record(self._kernels)
        prepared.start(self._kernels)
        end.record(self._kernels)
        return begin, end

    def _reduce(self, one: _Set, copied: bool) -> None:
        self._after.wait_for_event(one.ready)
        self._reducer.start(one.arguments, self._after)
        maps = one.instance.maps
        if copied:
            self._driver.memcpy_dtoh_async(self._host, maps.address(0), self._after)
            self._reducer.copy(self._after)
        maps.clear(self._after)
        one.free.record(self._after)

    def _retire(self, gathered: _Gathered) -> None:
        while self._flights and self._ended(self._flights[0]):
            flight = self._flights.popleft()
            self._events.append(flight.done)
            gathered.launches += 1
            gathered.fresh |= flight.copied
            if flight.timed and flight.plain:
                for times, (begin, end) in (
                    (gathered.probed, flight.timed),
                    (gathered.plain, flight.plain),
                ):
                    times.append(end.time_since(begin) / 1e3)
                ahead = int(_AHEAD_SECONDS / max(gathered.probed[-1], 1e-6))
                self._ahead = max(_LEAST_AHEAD, min(_MOST_AHEAD, ahead))

    def _ended(self, flight: _Flight) -> bool:
        last = flight.plain[1] if flight.plain else flight.done
        if flight.done.query() and last.query():
            self._moved = time.monotonic()
            return True
        if time.monotonic() - self._moved > self._probed.timeout:
            raise hung(self._probed.timeout)
        return False

    def _take_event(self) -> Any:
        return self._events.pop() if self._events else self._event()
