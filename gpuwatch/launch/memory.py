"""The memory that a captured launch left: which words of it are addresses, and of what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwatch.errors import UserError
from gpuwatch.launch.model import Pointers, Relocation, SymbolRelocation

WORD = 8
_SCANNED = 1 << 15
"""Words looked through at a time."""


@dataclass(slots=True)
class Piece:
    """An allocation (`name` is "") or a module variable in the captured program's memory."""

    name: str
    address: int
    content: NDArray[np.uint8]
    is_set: bool = True
    """Whether the host gave the variable its content."""


@dataclass(slots=True)
class Untied:
    """What a launch needs of the captured memory, free of its addresses; see `Launch`."""

    parameters: bytes
    relocations: tuple[Relocation, ...]
    symbol_relocations: tuple[SymbolRelocation, ...]
    buffers: list[NDArray[np.uint8]]
    buffer_relocations: dict[int, Pointers]
    globals: dict[str, bytes]
    global_relocations: dict[str, Pointers]


def untie(parameters: bytes, pieces: Sequence[Piece]) -> Untied:
    """Takes the addresses out of a launch's memory and leaves out what no address leads to.

    A word counts as an address when it lies in a piece, its end included: 8-byte aligned in
    memory, anywhere in the parameter block. Raises UserError where memory holds the address of a
    module variable, which differs from module to module.
    """
    places = _Places(pieces)
    block, found = _from_block(parameters, places)
    pointers = {index: places.pointers_in(piece.content) for index, piece in enumerate(pieces)}
    pointers = {index: inside for index, inside in pointers.items() if inside.offsets.size}
    roots = {target for _, target, _ in found}
    roots |= {index for index, piece in enumerate(pieces) if piece.name and piece.is_set}
    reached = _reached(roots, pointers)
    kept = [index for index in sorted(reached) if not pieces[index].name]
    number = np.full(len(pieces) + 1, -1, np.int64)
    number[kept] = np.arange(len(kept))
    inside = {i: _renumbered(pointers[i], number, pieces) for i in reached if i in pointers}
    cleared = {i: _cleared(pieces[i].content, inside.get(i)) for i in reached}
    variables = {i: pieces[i].name for i in reached if pieces[i].name and pieces[i].is_set}
    return Untied(
        parameters=block,
        relocations=tuple(
            Relocation(at, int(number[i]), addend) for at, i, addend in found if number[i] >= 0
        ),
        symbol_relocations=tuple(
            SymbolRelocation(at, pieces[i].name, addend) for at, i, addend in found if number[i] < 0
        ),
        buffers=[cleared[i] for i in kept],
        buffer_relocations={int(number[i]): inside[i] for i in kept if i in inside},
        globals={name: cleared[i].tobytes() for i, name in variables.items()},
        global_relocations={name: inside[i] for i, name in variables.items() if i in inside},
    )


class _Places:
    """Finds the piece that an address lies in."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        starts = np.array([piece.address for piece in pieces], np.uint64)
        self._order = np.argsort(starts, kind="stable").astype(np.int64)
        self._starts = starts[self._order]
        sizes = np.array([piece.content.size for piece in pieces], np.uint64)
        self._ends = self._starts + sizes[self._order]

    @staticmethod
    def _words_between(
        words: NDArray[np.uint64], low: np.uint64, high: np.uint64
    ) -> NDArray[np.int64]:
        """Indices of the words from `low` to `high`, found in pieces that stay in the cache."""
        found = []
        for start in range(0, words.size, _SCANNED):
            distances = words[start : start + _SCANNED] - low
            found.append(np.flatnonzero(distances <= high - low) + start)
        return np.concatenate(found)

    def pointers_in(self, memory: NDArray[np.uint8]) -> Pointers:
        """The aligned words of `memory` that are addresses; `buffers` are indices of pieces."""
        words = memory[: memory.size // WORD * WORD].view(np.uint64)
        if not self._starts.size or not words.size:
            return Pointers(*(np.zeros(0, np.int64) for _ in range(3)))
        at = self._words_between(words, self._starts[0], self._ends.max())
        values = words[at]
        below = np.searchsorted(self._starts, values, side="right") - 1
        inside = values <= self._ends[below]
        at, values, below = at[inside], values[inside], below[inside]
        return Pointers(
            offsets=at * WORD,
            buffers=self._order[below],
            addends=(values - self._starts[below]).astype(np.int64),
        )


def _from_block(block: bytes, places: _Places) -> tuple[bytes, list[tuple[int, int, int]]]:
    """The block without addresses, and each one's (offset, piece, addend)."""
    cleared = bytearray(block)
    found: list[tuple[int, int, int]] = []
    for shift in range(WORD):
        part = places.pointers_in(np.frombuffer(block[shift:], np.uint8))
        rows = zip(part.offsets.tolist(), part.buffers.tolist(), part.addends.tolist(), strict=True)
        found += [(offset + shift, piece, addend) for offset, piece, addend in rows]
    found.sort()
    for offset, _, _ in found:
        cleared[offset : offset + WORD] = bytes(WORD)
    return bytes(cleared), found


def _reached(roots: Iterable[int], pointers: dict[int, Pointers]) -> set[int]:
    reached: set[int] = set()
    waiting = list(roots)
    while waiting:
        index = waiting.pop()
        if index not in reached:
            reached.add(index)
            if index in pointers:
                waiting += np.unique(pointers[index].buffers).tolist()
    return reached


def _renumbered(pointers: Pointers, number: NDArray[np.int64], pieces: Sequence[Piece]) -> Pointers:
    buffers = number[pointers.buffers]
    if (buffers < 0).any():
        name = pieces[int(pointers.buffers[buffers < 0][0])].name
        raise UserError(
            f"memory holds the address of the variable {name}, which no other module can have",
            hint="pass the address to the kernel as an argument of its own",
        )
    return Pointers(pointers.offsets, buffers, pointers.addends)


def _cleared(content: NDArray[np.uint8], pointers: Pointers | None) -> NDArray[np.uint8]:
    if pointers is None:
        return content
    cleared = content.copy()
    words = cleared[: cleared.size // WORD * WORD].view(np.uint64)
    words[pointers.offsets // WORD] = 0
    return cleared
