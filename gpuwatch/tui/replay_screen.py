"""The live screen over a recorded trace: its launches are played, stopped and sought."""

from __future__ import annotations

from typing import ClassVar, cast

from gpuwatch.engine.replay_watch import ReplayWatch
from gpuwatch.tui.keymap import Where, bindings
from gpuwatch.tui.live_screen import LiveScreen


class ReplayScreen(LiveScreen):
    """The app's feed must be a `ReplayWatch`."""

    BINDINGS = bindings("replay")
    where: ClassVar[Where] = "replay"

    @property
    def _player(self) -> ReplayWatch:
        return cast(ReplayWatch, self.gpuwatch.feed)

    def action_play(self) -> None:
        self._player.play_or_stop()

    def action_move(self, launches: int) -> None:
        self._player.move(launches)

    def action_faster(self, steps: int) -> None:
        self._player.faster(steps)
