"""The live screen of a kernel that a running program launches."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, cast

from gpuwatch.engine.frame import Status
from gpuwatch.engine.program_kernels import ProgramWatch
from gpuwatch.errors import UserError
from gpuwatch.tui.keymap import Where, bindings, without
from gpuwatch.tui.live_screen import LiveScreen
from gpuwatch.tui.pane import View
from gpuwatch.tui.program_header import command_text, end_text

_COMMAND_PART = 5
"""Of how many columns of the screen the command takes one at most."""


def status_of(watch: ProgramWatch) -> Status:
    """That a program has ended is told by itself, and is no failure."""
    status = watch.status()
    over = watch.program().state == "ended" and status.error is None
    return Status("running") if over else status


class ProgramLiveScreen(LiveScreen):
    """The app's feed must be a `ProgramWatch`; `kernel` is a key of it, and so is the `mangled` of
    its frames."""

    BINDINGS = bindings("attached")
    where: ClassVar[Where] = "attached"

    def __init__(self, kernel: str | None, probe: str | None) -> None:
        super().__init__(kernel, probe)
        self._detached = False
        self._ended = ""
        self._process: int | None = None

    @property
    def probe(self) -> str | None:
        """The one that was chosen last."""
        return self._probe

    @property
    def _watch(self) -> ProgramWatch:
        return cast(ProgramWatch, self.gpuwatch.feed)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of the live screen that have no meaning here do nothing."""
        dropped = {one.partition("(")[0] for one in without(self.where)}
        return action not in dropped and super().check_action(action, parameters)

    def action_to_list(self) -> None:
        self.dismiss()

    def action_restart(self) -> None:
        self._switch()

    def action_record(self) -> None:
        if self._detached or self._ended:
            self.notify(self._ended or "no probe is attached", title="nothing to record")
            return
        super().action_record()

    def action_detach(self) -> None:
        if self._detached or self._ended:
            self.notify("no probe is attached")
            return
        self._watch.detach()
        self._detached, self._shown = True, ()
        self.pull()

    def _switch(
        self, kernel: str | None = None, probe: str | None = None, launch: int | None = None
    ) -> None:
        """The kernel is told again, for nothing is watched after a detachment."""
        if self._ended:
            self.notify(f"{self._ended}; no probe can be attached any more")
            return
        self._detached = False
        super()._switch(kernel or self._kernel, probe, launch)

    def pull(self) -> None:
        self._ended = self._ending()
        super().pull()

    def _ending(self) -> str:
        """How the program or the kernel's process has ended, "" while they run."""
        watch = self._watch
        program = watch.program()
        if program.state == "ended":
            return f"the program {end_text(program.status)}"
        if self._process is None:
            known = watch.program_kernels()
            self._process = next((one.process for one in known if one.key == self._kernel), None)
        for process in watch.processes():
            if process.pid == self._process and process.status is not None:
                return f"process {process.pid} {end_text(process.status)}"
        return ""

    def _waiting(self) -> str:
        """Of one source alone, which a process of the program may call otherwise."""
        frame, status = self._frame, self._status()
        if self._detached or self._ended:
            return ""
        if frame is None:
            return status.detail if status.state == "waiting" else ""
        if frame.mangled != self._kernel:
            return f"switching to {self._kernel_name()}"
        if self._probe not in (None, frame.probe):
            return f"switching to {self._probe}"
        return ""

    def _status(self) -> Status:
        return status_of(self._watch)

    def _at_rest(self) -> str:
        if self._detached:
            return "no probe is attached; 1-9 attaches one again"
        return self._ended or "running"

    def _view(self, status: Status, waiting: bool, now: int) -> View:
        ended = "ENDED" if self._ended else "DETACHED" if self._detached else ""
        command = command_text(self._watch.program().command)
        room = self.size.width // _COMMAND_PART
        if len(command) > room:
            command = command[: room - 1] + self.glyphs.ellipsis
        view = super()._view(status, waiting, now)
        stale = view.stale or self._detached
        return replace(view, source=command, ended=ended, stale=stale)

    def _way_out(self, bad: UserError, status: Status) -> str:  # noqa: ARG002
        keys = self.gpuwatch.keymap
        return f"{keys.text('kernel')} goes back to the kernels, {keys.text('quit')} quits"
