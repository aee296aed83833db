"""Launching without a pause: groups of launches in turn, one reduced while the next one runs."""

from __future__ import annotations

import math
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import Batch, Reduced
from gpuwatch.device.cuda.kernel import CudaKernel, Instance, fault, hung, wait_for
from gpuwatch.device.cuda.memory import MapMemory
from gpuwatch.device.cuda.module import DriverError, PreparedLaunch
from gpuwatch.device.cuda.reduction import Reducer, ReductionGroup

_AHEAD_SECONDS = 0.02
"""Work in the queue: enough while the host reads and draws a frame, little enough that a switch
is at once."""
_GROUP_SECONDS = 0.002
"""A group's length: its one meeting of two streams is then a small part of it."""
_MOST_LAUNCHES = 8
_CACHE_SHARE = 8
"""What part of the L2 the groups' maps may take, so that they do not drive out what the kernel
keeps there."""
_KNOWN_PAIRS = 20
"""Timed pairs after which the ratio is known well."""
_SELDOM = 16
"""Beyond that, pairs come so many times less often."""
_UNTIMED_SECONDS = 0.0001
"""Work in front of a timed launch: the host needs some 10 us to put one into the stream, and must
have done so before its turn comes."""
_MOST_UNTIMED = 16
_NAP_SECONDS = 0.00005

_Span = tuple[Any, Any]
"""Events around a kernel."""


@dataclass(slots=True)
class _Group:
    """Instances of the kernel, each with its own maps, which are reduced together; `ready` is
    recorded behind their launches, `free` once their maps are cleared again."""

    instances: list[Instance]
    reduction: ReductionGroup
    ready: Any
    free: Any


@dataclass(slots=True)
class _Flight:
    """A group that is under way; `done` is recorded behind its reductions."""

    done: Any
    launches: int
    copied: bool
    probed: _Span | None = None
    plain: _Span | None = None


@dataclass(slots=True)
class _Gathered:
    launches: int = 0
    probed: list[float] = field(default_factory=list)
    plain: list[float] = field(default_factory=list)
    fresh: bool = False


class CudaPipeline:
    """See `Pipeline`. One launch in `plain_every` is timed, and then a plain one: each behind
    some of its own kind that do not count, as if nothing else ran. They are less often once their
    ratio is known well.

    Kernels run in one stream; reductions, copies and the clearing of maps in another, so that
    they overlap with the next group. `seconds` is about what a launch takes; `max_rate` is in
    launches a second, 0 for no limit.
    """

    def __init__(
        self,
        probed: CudaKernel,
        plain: CudaKernel,
        reducer: Reducer,
        seconds: float,
        *,
        plain_every: int,
        max_rate: float,
    ) -> None:
        self._driver = probed.driver
        self._probed, self._plain = probed, plain
        self._plain_every = plain_every
        self._reducer = reducer
        self._kernels, self._after = self._driver.Stream(), self._driver.Stream()
        cache = self._driver.device_attribute.L2_CACHE_SIZE
        most = self._driver.Context.get_device().get_attribute(cache) // _CACHE_SHARE
        sets = most // max(1, sum(probed.map_buffers))
        size = _group_size(seconds, sets, max_rate)
        self._groups = [self._make_group(size) for _ in range(2 if sets > 1 else 1)]
        maps = self._groups[0].instances[0].maps
        self._host: NDArray[np.uint8] = self._driver.pagelocked_empty(maps.cleared_bytes, np.uint8)
        self._ahead = 1 + max(1, min(64, int(_AHEAD_SECONDS / (seconds * size))))
        self._untimed = _untimed_launches(seconds)
        self._pause = size / max_rate if max_rate else 0.0
        self._flights: deque[_Flight] = deque()
        self._events: list[Any] = []
        self._begun = 0
        """Groups begun."""
        self._pairs = 0
        self._until_plain = 0
        """Launches until the next pair."""
        self._next = 0.0
        self._moved = 0.0
        """When a group was last seen to end."""

    def advance(self, until: float) -> Batch:
        gathered = _Gathered()
        wanted = True
        self._moved = time.monotonic()
        try:
            while time.monotonic() < until or not gathered.fresh:
                self._retire(gathered)
                if len(self._flights) < self._ahead and time.monotonic() >= self._next:
                    self._begin(copied=wanted)
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
        return self._groups[0].instances[0].maps.part(self._host, index)

    def settle(self) -> None:
        for flight in self._flights:
            wait_for(flight.done, self._probed.timeout)
        self._kernels.synchronize()

    def close(self) -> None:
        """Waits for what is under way, then frees."""
        self.settle()
        for group in self._groups:
            for one in group.instances:
                one.close()
        self._reducer.close()

    # ---- setting up

    def _make_group(self, size: int) -> _Group:
        one = self._probed
        sizes = (*one.map_buffers, self._reducer.scratch_bytes)
        instances, places = [], []
        for _ in range(size):
            maps = MapMemory(self._driver, sizes, one.fixed)
            maps.clear(self._after)
            instances.append(
                Instance(self._driver, one.image, one.launch, one.memory, maps, one.shared_module)
            )
            *buffers, scratch = [maps.address(index) for index in range(len(sizes))]
            places.append((buffers, scratch))
        reduction = self._reducer.prepare(places)
        group = _Group(instances, reduction, self._event(), self._event())
        group.free.record(self._after)
        return group

    def _event(self) -> Any:
        return self._driver.Event(self._driver.event_flags.DISABLE_TIMING)

    # ---- launching

    def _begin(self, *, copied: bool) -> None:
        """Puts a group's launches into one stream, and what follows them into the other."""
        group = self._groups[self._begun % len(self._groups)]
        done = self._events.pop() if self._events else self._event()
        flight = _Flight(done, len(group.instances), copied)
        self._kernels.wait_for_event(group.free)
        *others, last = group.instances
        for one in others:
            self._launch(one)
        if self._until_plain <= 0:
            self._launch_pair(last, flight)
        else:
            self._launch(last)
        group.ready.record(self._kernels)
        self._reduce(group, copied)
        flight.done.record(self._after)
        self._flights.append(flight)
        self._begun += 1
        self._until_plain -= len(group.instances)
        self._next = time.monotonic() + self._pause

    def _launch(self, one: Instance, span: _Span | None = None) -> None:
        one.restore(self._kernels, self._probed.changed)
        self._start(one.prepared, span)

    def _launch_apart(self, kernel: CudaKernel, span: _Span | None = None) -> None:
        """With the maps of the kernel itself, if any, which no reduction reads."""
        kernel.restore_variables(self._kernels)
        self._start(kernel.prepared, span)

    def _start(self, prepared: PreparedLaunch, span: _Span | None) -> None:
        """A launch from the first contents of the buffers, between the events of `span` alone."""
        self._probed.memory.restore(self._kernels)
        if span is not None:
            span[0].record(self._kernels)
        prepared.start(self._kernels)
        if span is not None:
            span[1].record(self._kernels)

    def _launch_pair(self, one: Instance, flight: _Flight) -> None:
        """A probed and a plain launch, timed when the former group's reduction has run. Of all
        that run here the timed probed one alone leaves its records in the maps of `one`."""
        for group in self._groups:
            self._kernels.wait_for_event(group.free)
        flight.probed, flight.plain = self._span(), self._span()
        for _ in range(self._untimed - 1):
            self._launch(one)
        one.maps.clear(self._kernels)
        # So that the timed launch, like the plain one, does not stand behind the clearing.
        self._launch_apart(self._probed)
        self._launch(one, flight.probed)
        for _ in range(self._untimed):
            self._launch_apart(self._plain)
        self._launch_apart(self._plain, flight.plain)
        self._pairs += 1
        self._until_plain = self._plain_every
        if self._pairs > _KNOWN_PAIRS:
            self._until_plain *= _SELDOM

    def _span(self) -> _Span:
        return self._driver.Event(), self._driver.Event()

    def _reduce(self, group: _Group, copied: bool) -> None:
        self._after.wait_for_event(group.ready)
        self._reducer.start(group.reduction, self._after)
        if copied:
            newest = group.instances[-1].maps
            self._driver.memcpy_dtoh_async(self._host, newest.address(0), self._after)
            self._reducer.copy(self._after)
        for one in group.instances:
            one.maps.clear(self._after)
        group.free.record(self._after)

    def _retire(self, gathered: _Gathered) -> None:
        while self._flights and self._ended(self._flights[0]):
            flight = self._flights.popleft()
            self._events.append(flight.done)
            gathered.launches += flight.launches
            gathered.fresh |= flight.copied
            for times, span in ((gathered.probed, flight.probed), (gathered.plain, flight.plain)):
                if span is not None:
                    times.append(span[1].time_since(span[0]) / 1e3)

    def _ended(self, flight: _Flight) -> bool:
        if flight.done.query():
            self._moved = time.monotonic()
            return True
        if time.monotonic() - self._moved > self._probed.timeout:
            raise hung(self._probed.timeout)
        return False


def _group_size(seconds: float, sets: int, max_rate: float) -> int:
    """Launches in a group: fewer where they are long, there is room for few sets of maps, or their
    rate is limited."""
    by_time = _GROUP_SECONDS / max(seconds, 1e-6)
    by_rate = max_rate * _AHEAD_SECONDS if max_rate else _MOST_LAUNCHES
    return max(1, min(_MOST_LAUNCHES, sets // 2, int(min(by_time, by_rate))))


def _untimed_launches(seconds: float) -> int:
    """In front of a timed one, where a launch takes so long."""
    return max(1, min(_MOST_UNTIMED, math.ceil(_UNTIMED_SECONDS / max(seconds, 1e-6))))
