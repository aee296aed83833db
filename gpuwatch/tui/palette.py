"""The command palette: every action of the key table, and every probe by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from gpuwatch.tui.keymap import Key

if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp

_EVERY_WORD = 1_000.0
"""Put on the score of what has every word that was typed, and again of what begins so."""


class KeyCommands(Provider):
    """Does what the key does."""

    @property
    def gpuwatch(self) -> GpuwatchApp:
        return cast("GpuwatchApp", self.app)

    def _all(self) -> Iterator[tuple[str, str, Callable[[], None]]]:
        """(what is shown, its key, what it does)."""
        press = self.gpuwatch.press
        for probe in self.gpuwatch.feed.probes():
            if probe.key and not probe.problem:
                text = f"probe {probe.name}: {probe.title}"
                yield text, str(probe.key), partial(press, f"probe({probe.key})")
        for key in self.gpuwatch.keymap.commands(self.gpuwatch.where):
            yield command_text(key), key.text, self._doing(key)

    def _doing(self, key: Key) -> Callable[[], None]:
        if key.action:
            return partial(self.gpuwatch.press, key.action)
        return partial(self.gpuwatch.simulate_key, key.names[0])

    async def discover(self) -> Hits:
        for text, key, act in self._all():
            yield DiscoveryHit(text, act, help=key)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        typed = query.casefold().strip()
        for text, key, act in self._all():
            score, there = matcher.match(text), text.casefold()
            score += _EVERY_WORD * all(word in there for word in typed.split())
            score += _EVERY_WORD * there.startswith(typed)
            if score > 0:
                yield Hit(score, matcher.highlight(text), act, help=key)


def command_text(key: Key) -> str:
    """How the palette calls what a key does."""
    return f"{key.id}: {key.help}" if key.id else key.help
