"""Memory of the reference interpreter: pieces at addresses, and the spaces that threads see.

Shared, local and parameter memory are addressed from 0 in their own space; seen by a generic
address each has a window.
"""

from __future__ import annotations

from collections.abc import Mapping

WINDOWS = {"shared": 1 << 56, "local": 2 << 56, "param": 3 << 56}
"""The generic address of the first byte of a space. Global and constant memory are seen as they
are."""


class Memory:
    """Bytes in pieces that do not touch, each from its address on."""

    def __init__(self, pieces: Mapping[int, bytes]) -> None:
        self.pieces = {start: bytearray(content) for start, content in pieces.items()}

    def _piece(self, address: int, size: int) -> tuple[bytearray, int]:
        for start, content in self.pieces.items():
            if start <= address and address + size <= start + len(content):
                return content, address - start
        raise IndexError(f"{size} bytes at {address:#x} are no memory of the launch")

    def read(self, address: int, size: int) -> int:
        content, place = self._piece(address, size)
        return int.from_bytes(content[place : place + size], "little")

    def write(self, address: int, size: int, bits: int) -> None:
        content, place = self._piece(address, size)
        content[place : place + size] = bits.to_bytes(size, "little")

    def text(self, address: int) -> str:
        """The characters from an address on, up to a zero byte."""
        found = bytearray()
        while byte := self.read(address + len(found), 1):
            found.append(byte)
        return found.decode()


class Stack(Memory):
    """One piece from 0 on that grows: local memory and parameters of the functions in progress."""

    def __init__(self, content: bytes = b"") -> None:
        super().__init__({0: content})

    @property
    def top(self) -> int:
        return len(self.pieces[0])

    def grow(self, top: int) -> None:
        self.pieces[0].extend(bytes(top - self.top))

    def shrink(self, top: int) -> None:
        del self.pieces[0][top:]


Spaces = dict[str, Memory]
"""The memories that a thread sees, by state space."""


def space_named(tokens: tuple[str, ...], spaces: Spaces) -> str:
    """The state space that an opcode names; "" for generic addresses."""
    parts = (token.partition("::")[0] for token in tokens)
    return next((part for part in parts if part in spaces), "")


def located(spaces: Spaces, space: str, address: int) -> tuple[Memory, int]:
    """The memory that an address of a space (generic where it is "") lies in, and where there."""
    if space:
        return spaces[space], address
    for name, window in WINDOWS.items():
        if window <= address < window + (1 << 56):
            return spaces[name], address - window
    return spaces["global"], address
