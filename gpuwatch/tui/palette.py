"""The command palette: every action of the key table, and every probe by its name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp


class KeyCommands(Provider):
    """Does what the key does."""

    @property
    def gpuwatch(self) -> GpuwatchApp:
        return cast("GpuwatchApp", self.app)

    def _all(self) -> Iterator[tuple[str, str, str]]:
        """(what is shown, its key, action)."""
        for probe in self.gpuwatch.feed.probes():
            if probe.key and not probe.problem:
                yield f"probe {probe.name}: {probe.title}", str(probe.key), f"probe({probe.key})"
        for key, text, action in self.gpuwatch.keymap.commands(self.gpuwatch.where):
            yield text, key, action

    async def discover(self) -> Hits:
        for text, key, action in self._all():
            yield DiscoveryHit(text, partial(self.gpuwatch.press, action), help=key)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for text, key, action in self._all():
            score = matcher.match(text)
            if score > 0:
                shown = matcher.highlight(text)
                yield Hit(score, shown, partial(self.gpuwatch.press, action), help=key)
