"""The lines above the list of kernels: the program, its processes, and what is not seen of it."""

from __future__ import annotations

import shlex
import signal
import textwrap
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from textual.strip import Strip
from textual.widget import Widget

from gpuwatch.engine.frame import ProbeChoice
from gpuwatch.engine.program_kernels import ProgramProcess, ProgramState
from gpuwatch.tui.glyphs import Glyphs, whole
from gpuwatch.tui.kernel_names import cut_within
from gpuwatch.tui.paint import Span, as_many, spread_out, width_of
from gpuwatch.tui.pane import Drawing
from gpuwatch.tui.probe_line import probe_line
from gpuwatch.tui.theme import ALARM, CHOSEN, KEY, QUIET, STRONG, TAG, TEXT, WRONG

Line = list[Span]

_GAP: Span = ("   ", QUIET)
_UNSEEN = " NOT ALL SEEN "
_MOST_NOTICES = 4
"""Lines of what is not seen."""
_WINDOW_SECONDS = 2.0
_LEAST_COMMAND, _BRIEF_COMMAND = 12, 24


def command_text(command: Sequence[str]) -> str:
    return shlex.join(command)


def end_text(status: int | str | None) -> str:
    """How a process ended: "ended with status 1", "was killed by SIGSEGV"."""
    if isinstance(status, str):
        if not status.removeprefix("-").isdigit():
            return status or "ended"
        status = int(status)
    if status is None:
        return "ended"
    if status >= 0:
        return f"ended with status {status}"
    known = {one.value: one.name for one in signal.Signals}
    return f"was killed by {known.get(-status, f'signal {-status}')}"


class LaunchesPerSecond:
    """Of a count that is read again and again."""

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()

    def add(self, at: float, launches: int) -> None:
        """`launches` so far at `at` (monotonic seconds)."""
        self._marks.append((at, launches))
        while len(self._marks) > 2 and at - self._marks[1][0] >= _WINDOW_SECONDS:
            self._marks.popleft()

    @property
    def value(self) -> float | None:
        """Over the last two seconds, None until there are two readings."""
        if len(self._marks) < 2 or self._marks[0][0] == self._marks[-1][0]:
            return None
        (begin, first), (end, last) = self._marks[0], self._marks[-1]
        return (last - first) / (end - begin)


@dataclass(frozen=True, slots=True)
class Overview:
    """What the header tells of a program. `kernels` is how many there are."""

    program: ProgramState
    processes: tuple[ProgramProcess, ...]
    kernels: int
    per_second: float | None
    device: str
    probes: tuple[ProbeChoice, ...]
    probe: str


class ProgramHeader(Drawing, Widget):
    """Command and state; counts; probes; then processes and notices, where there are any."""

    DEFAULT_CSS = "ProgramHeader { height: 3; }"

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._overview: Overview | None = None
        self._lines: list[Line] = []

    def show(self, overview: Overview) -> None:
        if overview != self._overview:
            self._overview = overview
            self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        seen, width = self._overview, self.size.width
        if seen is None or not width:
            return
        lines = [
            self._headline(seen, width),
            [(" ", TEXT), *as_many(self._counts(seen), width - 2, _GAP)],
            [(" probe", QUIET), *probe_line(seen.probes, seen.probe, "", self.glyphs, width - 6)],
        ]
        if len(seen.processes) > 1:
            lines.append(self._processes(seen.processes, width))
        lines += notices(seen.processes, width, self.glyphs.ellipsis)
        self._lines = lines
        if self.size.height != len(lines):
            self.styles.height = len(lines)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        return self.draw(self, self._lines[y] if y < len(self._lines) else [])

    def _headline(self, seen: Overview, width: int) -> Line:
        program = seen.program
        ended = program.state == "ended"
        words = end_text(program.status).removeprefix("was ") if ended else program.state
        state = f" {words.upper()} "
        failed = ended and program.status not in (0, None)
        right: Line = [(state, ALARM if failed else TAG), (" ", TEXT)]
        pid: Line = [("   pid ", QUIET), (str(program.pid), TEXT)] if program.pid else []
        left: Line = [(" gpuwatch ", CHOSEN), ("  ", TEXT)]
        room = max(_LEAST_COMMAND, width - width_of([*left, *pid, *right]) - 2)
        command = cut_within(command_text(program.command), room, self.glyphs.ellipsis)
        return spread_out([*left, (command, STRONG), *pid], right, width, (" ", TEXT))

    def _counts(self, seen: Overview) -> list[Line]:
        """In order of use."""
        launches = seen.program.launches
        groups: list[Line] = [
            _counted(seen.kernels, "kernel"),
            _counted(launches, "launch", "launches"),
        ]
        if seen.per_second is not None and seen.program.state == "running":
            groups.append([(whole(seen.per_second), STRONG), (" launches/s", QUIET)])
        if seen.device:
            groups.append([("on ", QUIET), (seen.device, TEXT)])
        return groups

    def _processes(self, processes: Sequence[ProgramProcess], width: int) -> Line:
        """As many as fit, and how many more there are; those that ended in error first."""
        ordered = sorted(processes, key=lambda one: one.status in (None, "", "0"))
        head: Line = [(f" {len(processes)} processes   ", QUIET)]
        whole_ones = [self._process(one, width) for one in ordered]
        brief = [self._process(one, _BRIEF_COMMAND) for one in ordered]
        versions = [whole_ones, *(brief[:count] for count in range(len(brief), 0, -1))]
        for shown in versions:
            line = [*head, *(span for group in shown for span in group)]
            if len(shown) < len(ordered):
                line.append((f"and {len(ordered) - len(shown)} more", QUIET))
            if width_of(line) <= width:
                return line
        return head

    def _process(self, one: ProgramProcess, room: int) -> Line:
        command = cut_within(one.command, room, self.glyphs.ellipsis)
        spans: Line = [(str(one.pid), KEY), (f" {command}", TEXT)]
        if one.status is not None:
            bad = one.status not in ("", "0")
            spans.append((f" {end_text(one.status)}", WRONG if bad else QUIET))
        return [*spans, _GAP]


def _counted(count: int, one: str, several: str = "") -> Line:
    return [(whole(count), STRONG), (f" {one if count == 1 else several or one + 's'}", QUIET)]


def notices(processes: Sequence[ProgramProcess], width: int, ellipsis: str) -> list[Line]:
    """What is not seen of the processes, once for all that have the same problem."""
    by_problem: dict[str, list[str]] = {}
    for one in processes:
        if one.problem:
            by_problem.setdefault(one.problem, []).append(str(one.pid))
    lines: list[Line] = []
    room = max(1, width - len(_UNSEEN) - 2)
    for problem, pids in by_problem.items():
        who = f"pid {', '.join(pids)}: " if len(processes) > 1 else ""
        texts = textwrap.wrap(who + problem, room)
        lines += [
            [
                (_UNSEEN if at == 0 else " " * len(_UNSEEN), ALARM if at == 0 else TEXT),
                (f" {text}", TEXT),
            ]
            for at, text in enumerate(texts)
        ]
    if len(lines) > _MOST_NOTICES:
        lines = [*lines[: _MOST_NOTICES - 1], [(" " * len(_UNSEEN) + f" {ellipsis}", TEXT)]]
    return lines
