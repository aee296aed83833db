"""The worker's dealings with its threads: what to prepare next, and what has become of it."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gpuwatch.engine.attach import PlainKernel
from gpuwatch.engine.background import Prepared, Preparer, Rebuilt, Recompiler, end_together
from gpuwatch.engine.build import Build
from gpuwatch.engine.choices import probe_choices
from gpuwatch.engine.frame import Listing, LogEntry
from gpuwatch.engine.machine_code import counts_marked, unknown
from gpuwatch.engine.marker import Marker
from gpuwatch.engine.messages import Answer, Aside, Problems
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError


class Beside:
    """Starts the threads. Methods are for the thread that launches; none of them waits."""

    def __init__(self, session: Session, options: Options, send: Callable[[Answer], None]) -> None:
        self._session = session
        self._send = send
        self._map_limit = options.map_limit
        self._presets = [choice.name for choice in probe_choices() if choice.key]
        self._watched: PlainKernel | None = None
        self._problems: dict[str, str] = {}
        self._logged: set[tuple[int, str, str]] = set()
        self._recompiler = Recompiler(session, options.sources, options.link, self._say)
        self._preparer = Preparer(
            loads=session.info.modelled, busy=lambda: self._recompiler.occupied
        )
        self._marker = Marker()
        self._rebuilds = 0
        self._unmarked = ""
        """Why lines were not marked, as last logged."""
        self._recompiler.start()
        self._preparer.start()
        self._marker.start()

    def end(self) -> None:
        end_together(self._recompiler, self._preparer, self._marker)

    @property
    def busy(self) -> bool:
        """Whether launches on a simulated device should leave the processors to the compiler."""
        return self._recompiler.occupied and self._session.info.modelled

    def has_begun(self) -> bool:
        """Whether a source has begun to be compiled since the last call, on such a device."""
        former, self._rebuilds = self._rebuilds, self._recompiler.rebuilds
        return former != self._rebuilds and self._session.info.modelled

    @property
    def has_rebuilt(self) -> bool:
        """Whether `rebuilt` would give something."""
        return not self._recompiler.outcomes.empty()

    def rebuilt(self) -> Rebuilt | None:
        """A source that was compiled again."""
        try:
            found = self._recompiler.outcomes.get_nowait()
        except queue.Empty:
            return None
        if found.problem is not None:
            self.log("error", found.problem.render())
        return found

    def now_watching(self) -> None:
        """Prepares the presets for another kernel or launch, the other sources, and logs what
        assembling the probe said."""
        session = self._session
        kernel, probe = session.selected
        self._log_assembly(session.build, kernel, probe)
        plain = session.build.plains[kernel]
        maps = [one.map.name for one in session.build.probeds[kernel, probe].layout.places]
        self._marker.want(session.program, plain, maps if counts_marked(maps) else ())
        if self._watched is plain:
            return
        self._watched = plain
        self._problems = {}
        self._send(Problems(()))
        self._preparer.want(session.build, kernel, [p for p in self._presets if p != probe])
        self._recompiler.compile_missing()

    def marked(self, listing: Listing) -> Listing | None:
        """The listing of what is watched with its marked lines, or why there are none, when that
        has become known."""
        found = self._marker.take()
        if found is None:
            return None
        if found.problem is None:
            return replace(listing, marked=found.lines)
        reason = unknown(found.problem)
        if reason != self._unmarked:
            self._unmarked = reason
            self.log("toolchain", reason)
        return replace(listing, unmarked=reason)

    def take_prepared(self) -> None:
        """Marks presets that cannot attach, but not those whose launch failed: beside others it may
        just have been too slow. On a GPU loads the next one that can, as far as the memory for
        maps goes."""
        try:
            done = self._preparer.outcomes.get_nowait()
        except queue.Empty:
            return
        problem = done.problem or self._load(done)
        if problem is None:
            self._log_assembly(done.build, done.kernel, done.probe)
        elif problem.status == 1:
            self.log("weaver", f"{done.probe} is not prepared: {problem.render()}")
        else:
            self._problems[done.probe] = problem.message
            self._send(Problems(tuple(self._problems.items())))
            self.log("weaver", f"{done.probe} cannot attach: {problem.render()}")

    def _load(self, done: Prepared) -> UserError | None:
        """Why it cannot be loaded, if it should be. Raises UserError for a fatal fault."""
        if self._session.info.modelled or done.build.map_bytes() >= self._map_limit // 4:
            return None
        self._session.settle()
        try:
            done.build.attach(done.kernel, done.probe, lambda _text: None)
        except UserError as problem:
            if problem.fatal:
                raise
            return problem
        return None

    def _log_assembly(self, build: Build, kernel: str, probe: str) -> None:
        probed = build.probeds.get((kernel, probe))
        if probed is None or (build.number, kernel, probe) in self._logged:
            return
        self._logged.add((build.number, kernel, probe))
        source = Path(build.program.options.source).name
        lines, sites = len(probed.woven.inserted_lines), len(probed.woven.sites)
        woven = f"{source}: {probe} woven into {sites} places of {kernel}, {lines} lines"
        self.log("weaver", "\n".join([woven, *probed.woven.notes]))
        self.log("toolchain", probed.runner.assembled.log.rstrip())
        for note in probed.runner.loaded.notes:
            self.log("device", note)

    def log(self, who: str, text: str) -> None:
        self._send(LogEntry(time.time(), who, text))

    def _say(self, text: str) -> None:
        """Called by threads."""
        self._send(Aside(text))
        if text:
            self.log("worker", text)
