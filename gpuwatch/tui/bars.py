"""The lines above and below the panes: headline, probes, figures, status, keys."""

from __future__ import annotations

from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from gpuwatch.engine.frame import Frame, Status
from gpuwatch.tui.comparison import speed_text, speedup
from gpuwatch.tui.glyphs import Glyphs, seconds, shape, whole
from gpuwatch.tui.kernel_names import fitted_name, shorten_signature
from gpuwatch.tui.keymap import Where
from gpuwatch.tui.paint import Span, as_many, roomiest, spread_out, width_of
from gpuwatch.tui.pane import Drawing, View
from gpuwatch.tui.probe_line import probe_line
from gpuwatch.tui.theme import (
    ALARM,
    CHOSEN,
    FASTER,
    KEY,
    ORANGE,
    QUIET,
    SLOWER,
    STRONG,
    TAG,
    TEXT,
    WRONG,
)

GAP: Span = ("   ", QUIET)
_BESIDE_NAME = 24
"""Cells of the headline that a long name of a kernel leaves to the rate."""
_LEAST_NAME = 16
_BUSY = Style(color=ORANGE)


def device_spans(frame: Frame) -> list[Span]:
    """Name and profile of the device."""
    info = frame.device
    profile = f" {info.kind}:{info.profile}" if info.profile else f" {info.kind}"
    return [(info.name, TEXT), (profile, QUIET)]


class Header(Drawing, Widget):
    """Three lines: what is watched; which probe; what it costs and whether it can be trusted."""

    DEFAULT_CSS = "Header { height: 3; }"

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs

    def show(self, view: View) -> None:
        self.view = view
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if self.view is None:
            return self.draw(self, [])
        line = (self._headline, self._probes, self._figures)[min(y, 2)]
        return self.draw(self, line(self.view), ages=y == 2)

    def _headline(self, view: View) -> list[Span]:
        width, frame = self.size.width, view.frame
        left: list[Span] = [(" gpuwatch ", CHOSEN), (" ", TEXT), (view.source, QUIET)]
        launch: list[Span] = []
        if frame is not None:
            launch.append((f" <<<{shape(frame.grid)}, {shape(frame.block)}>>>", TEXT))
        if view.kernel:
            left.append((" > ", QUIET))
            room = width - width_of([*left, *launch]) - (_BESIDE_NAME if launch else 1)
            left.append((self._kernel_text(view.kernel, room), STRONG))
        left += launch
        if frame is None:
            return left
        room = width - width_of(left) - 2
        tag: list[Span] = [(" MODELLED ", TAG)] if frame.device.modelled else []
        paused: list[Span] = [(" PAUSED ", TAG)] if view.paused else []
        ended: list[Span] = [(f" {view.ended} ", TAG)] if view.ended else []
        groups = [tag, paused, ended, self._rate(view, frame), device_spans(frame)]
        right = as_many([group for group in groups if group], room, GAP)
        return spread_out(left, [*right, (" ", TEXT)], width, (" ", TEXT))

    def _kernel_text(self, kernel: str, room: int) -> str:
        name = shorten_signature(kernel)
        room = max(_LEAST_NAME, room)
        return name if len(name) <= room else fitted_name(kernel, room, self.glyphs.ellipsis)

    def _rate(self, view: View, frame: Frame) -> list[Span]:
        if frame.recorded is not None:
            place, count = map(whole, frame.recorded)
            return [("launch ", QUIET), (place, STRONG), (f" of {count}", TEXT)]
        if view.paused:
            return [
                (f"at launch {whole(frame.launches)}", TEXT),
                (f", now {whole(view.launches_now)}", QUIET),
            ]
        launch = [("launch ", QUIET), (whole(frame.launches), STRONG)]
        return launch if view.ended else [*launch, (f" {frame.launches_per_second:.1f}/s", TEXT)]

    def _probes(self, view: View) -> list[Span]:
        return probe_line(view.probes, view.probe, view.refused, self.glyphs, self.size.width)

    def _figures(self, view: View) -> list[Span]:
        frame = view.frame
        if frame is None:
            return []
        checks = [self._checked(frame), *self._losses(frame)]
        losses = [checks[0], *(group for group in checks[1:] if group[-1][1] is not TEXT)]
        speed = self._speed(view, frame)
        brief = [group[:1] for group in speed]
        versions = [
            [*speed, *checks, self._times(frame), self._registers(frame, "registers")],
            [*speed, *checks, self._times(frame, brief=True), self._registers(frame, "regs")],
            [*speed, *checks, self._times(frame, brief=True)],
            [*brief, *checks, self._times(frame, brief=True)],
            [*brief, *checks, self._ratio(frame)],
            [*losses, *brief, self._ratio(frame), *checks[1:2]],
        ]
        of_former: list[Span] = [(" ", TEXT)]
        if frame.probe != view.probe:
            of_former.append((f"of {frame.probe}: ", TEXT))
        return [*of_former, *roomiest(versions, self.size.width - width_of(of_former))]

    def _speed(self, view: View, frame: Frame) -> list[list[Span]]:
        """How the kernel's plain time compares with the baseline's; nothing of two kernels of
        different names, unless the user pinned the one."""
        if view.baseline is None:
            return []
        before = view.baseline.frame
        name = shorten_signature(before.kernel)
        ratio = speedup(before, frame)
        comparable = view.baseline.pinned or name == shorten_signature(frame.kernel)
        if ratio is None or not comparable:
            return []
        if before.mangled == frame.mangled:
            name = f"launch {whole(before.launch)}"
            if before.build != frame.build:
                name = "the former build"
        if before.source != frame.source:
            name = before.source.rsplit("/", 1)[-1]
        said = speed_text(ratio, self.glyphs.times)
        modelled = ", modelled" if frame.device.modelled else ""
        return [
            [(f" {said} ", FASTER if ratio >= 1 else SLOWER), (f" than {name}{modelled}", QUIET)]
        ]

    def _checked(self, frame: Frame) -> list[Span]:
        """Whether the outputs are the same; of a running program, whose outputs are compared
        with nothing, how many of its launches had the probe."""
        if frame.attached is not None:
            launches = f" of {whole(frame.attached.seen)} launches"
            return [("probed ", QUIET), (whole(frame.attached.probed), STRONG), (launches, TEXT)]
        answer = {True: ("yes", STRONG), False: (" NO ", ALARM), None: ("not yet", QUIET)}
        return [("outputs identical ", QUIET), answer[frame.outputs_identical]]

    def _losses(self, frame: Frame) -> list[list[Span]]:
        expected = frame.records + frame.missing + frame.dropped
        groups: list[list[Span]] = [
            [("records ", QUIET), (f"{whole(frame.records)}/{whole(expected)}", TEXT)]
        ]
        for name, count in (("missing", frame.missing), ("dropped", frame.dropped)):
            groups.append([(name + " ", QUIET), (whole(count), WRONG if count else TEXT)])
        return groups

    def _times(self, frame: Frame, *, brief: bool = False) -> list[Span]:
        label = "modelled " if frame.device.modelled else "kernel "
        ratio = self._ratio_text(frame)
        bracketed = f" probed ({ratio})" if ratio else " probed"
        return [
            (label, QUIET),
            (self._plain_time(frame), TEXT),
            (f" {self.glyphs.arrow} ", QUIET),
            (seconds(frame.seconds_probed, self.glyphs), TEXT),
            (f" {ratio}" if brief else bracketed, STRONG if brief else QUIET),
        ]

    def _plain_time(self, frame: Frame) -> str:
        return seconds(frame.seconds_plain, self.glyphs) if frame.seconds_plain > 0 else "?"

    def _ratio(self, frame: Frame) -> list[Span]:
        return [("time ", QUIET), (self._ratio_text(frame), STRONG)]

    def _ratio_text(self, frame: Frame) -> str:
        """Probed time over plain time, "" where the plain time is not known."""
        return "" if frame.ratio is None else f"{self.glyphs.times}{frame.ratio:.2f}"

    def _registers(self, frame: Frame, label: str) -> list[Span]:
        return [
            (label + " ", QUIET),
            (str(frame.registers_plain), TEXT),
            (f" {self.glyphs.arrow} ", QUIET),
            (str(frame.registers_probed), TEXT),
        ]


class StatusLine(Drawing, Widget):
    """One line: what the worker does, and what the frame's notes say."""

    DEFAULT_CSS = "StatusLine { height: 1; }"

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self.status = Status("starting")
        self.notes: tuple[str, ...] = ()
        self.waiting_for = ""
        self.tick = 0
        self.at_rest = "running"

    def show(
        self,
        status: Status,
        notes: tuple[str, ...],
        waiting_for: str,
        tick: int,
        at_rest: str = "running",
    ) -> None:
        """`at_rest` is said where there is nothing else to say."""
        self.status, self.notes = status, notes
        self.waiting_for, self.tick = waiting_for, tick
        self.at_rest = at_rest
        self.refresh()

    def render_line(self, y: int) -> Strip:
        return self.draw(self, [(" ", TEXT), *self._spans()] if y == 0 else [])

    def _spans(self) -> list[Span]:
        state = self.status.state
        if state in ("failed", "stopped"):
            return [(f" {state} ", ALARM), (" " + self.status.detail, TEXT)]
        if state in ("starting", "preparing") or self.waiting_for:
            detail = self.status.detail if state != "running" else ""
            return [
                (self._turn() + " ", _BUSY),
                (self.waiting_for or detail or state, TEXT),
                (f"   {detail}" if self.waiting_for and detail else "", QUIET),
            ]
        return [
            *self._aside(),
            *[(f"   {self.glyphs.dot} {note}", TEXT) for note in self.notes],
        ]

    def _aside(self) -> list[Span]:
        """What goes on beside the launches, or that the former build runs on."""
        if self.status.aside:
            return [(self._turn() + " ", _BUSY), (self.status.aside, TEXT)]
        if self.status.error is not None:
            return [(" not compiled ", ALARM), (" the former build runs on", TEXT)]
        return [(self.at_rest, QUIET)]

    def _turn(self) -> str:
        return self.glyphs.spinner[self.tick // 3 % len(self.glyphs.spinner)]


class Footer(Drawing, Widget):
    """The keys, as many as fit; a click does what the key does."""

    DEFAULT_CSS = "Footer { height: 1; }"

    class Pressed(Message):
        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, glyphs: Glyphs, where: Where) -> None:
        super().__init__()
        self.glyphs = glyphs
        self.where: Where = where
        self.paused = False

    def show(self, paused: bool) -> None:
        if paused != self.paused:
            self.paused = paused
            self.refresh()

    def _groups(self) -> list[tuple[str, list[Span]]]:
        """(action, spans) of the keys that fit; help and quit come before all others."""
        keys = self.keymap.footer(self.where)
        room = self.size.width - 1
        kept = {"help", "finish"}
        used = sum(len(key) + len(label) + 3 for key, label, action in keys if action in kept)
        for key, label, action in keys:
            need = len(key) + len(label) + 3
            if action not in kept and used + need <= room:
                kept.add(action)
                used += need
        return [
            (action, [(key, KEY), (f" {self._label(label)}", TEXT)])
            for key, label, action in keys
            if action in kept
        ]

    def _label(self, label: str) -> str:
        return "go on" if label == "pause" and self.paused else label

    def render_line(self, y: int) -> Strip:
        spans: list[Span] = [(" ", TEXT)]
        for _, group in self._groups() if y == 0 else ():
            spans += [*group, ("  ", TEXT)]
        return self.draw(self, spans)

    def on_click(self, event: events.Click) -> None:
        edge = 1
        for action, group in self._groups():
            edge += width_of(group) + 2
            if event.x < edge:
                if action and "(" not in action:
                    self.post_message(self.Pressed(action))
                return
