"""What the kernel prints: `vprintf` calls of the generated code, formatted and kept in order."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable

from gpuwatch.device.sim.arena import Arena
from gpuwatch.device.sim.layout import LOCAL_WINDOW, WINDOW_BYTES, BlockField

BUFFER_BYTES = 1 << 20
"""Characters kept of one launch; CUDA's buffer has the same size."""
_FIELD = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+)?)?(hh|h|ll|l|L|j|z|t)?([a-zA-Z%])|%")
_LONG = frozenset(["l", "ll", "j", "z", "t"])
_Take = Callable[[int], bytes]
PrintFunction = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32, *[ctypes.c_void_p] * 4
)
"""Of a block's state, the warp, the mask of lanes; and pointers to 32 formats, 32 argument buffers
(device addresses), 32 host addresses of local memory; and shared memory."""


class Console:
    """Collects the output of a launch; blocks come in the order of their indices."""

    def __init__(self, arena: Arena, local_bytes: int) -> None:
        self._arena = arena
        self._local_bytes = local_bytes
        self._parts: list[tuple[int, str]] = []
        self._kept = 0
        self._lost = 0
        self.function = PrintFunction(self._print)

    def reset(self) -> None:
        self._parts, self._kept, self._lost = [], 0, 0

    def text(self) -> str:
        """What was printed; ends with a line about the calls that were lost, if any were."""
        shown = "".join(text for _, text in sorted(self._parts, key=lambda part: part[0]))
        if not self._lost:
            return shown
        newline = "" if shown.endswith("\n") else "\n"
        return f"{shown}{newline}[{self._lost} more printf calls found the buffer full]\n"

    def _print(
        self, slot: int, _warp: int, mask: int, formats: int, arguments: int, local: int, _: int
    ) -> None:
        if self._kept >= BUFFER_BYTES:
            self._lost += mask.bit_count()
            return
        block = ctypes.c_int64.from_address(slot + BlockField.LINEAR).value
        tables = [(ctypes.c_uint64 * 32).from_address(at) for at in (formats, arguments, local)]
        for lane in range(32):
            if mask >> lane & 1:
                form, given, base = (int(table[lane]) for table in tables)
                text = self._format(self._string(form, base), given, base)
                self._parts.append((block, text))
                self._kept += len(text)

    def _bytes(self, address: int, size: int, base: int) -> bytes:
        """Up to `size` bytes at a device address; `base` is the lane's local memory."""
        inside = address - LOCAL_WINDOW
        if 0 <= inside < WINDOW_BYTES:
            room = max(0, min(size, self._local_bytes - inside))
            return ctypes.string_at(base + inside, room)
        return self._arena.bytes_at(address, size)

    def _string(self, address: int, base: int) -> str:
        raw = self._bytes(address, 4096, base).split(b"\0", 1)[0]
        return raw.decode("utf-8", "replace")

    def _format(self, form: str, arguments: int, base: int) -> str:
        taken = 0

        def take(size: int) -> bytes:
            nonlocal taken
            taken = -(-taken // size) * size
            raw = self._bytes(arguments + taken, size, base)
            taken += size
            return raw.ljust(size, b"\0")

        def width(text: str | None) -> str:
            return str(struct.unpack("<i", take(4))[0]) if text == "*" else text or ""

        def one(match: re.Match[str]) -> str:
            flags, wide, precision, length, kind = match.groups()
            if kind in (None, "%"):
                return "%"
            head = f"%{flags}{width(wide)}"
            if precision is not None:
                head += f".{width(precision)}"
            return self._field(head, length or "", kind, take, base)

        return _FIELD.sub(one, form)

    def _field(self, head: str, length: str, kind: str, take: _Take, base: int) -> str:
        if kind in "eEfFgGaA":
            value: float = struct.unpack("<d", take(8))[0]
            return str(value.hex()) if kind in "aA" else (head + kind) % value
        if kind == "s":
            (address,) = struct.unpack("<Q", take(8))
            return (head + "s") % self._string(address, base)
        if kind == "p":
            return (head + "s") % f"0x{struct.unpack('<Q', take(8))[0]:x}"
        signed = kind in "di"
        size = 8 if length in _LONG else 4
        number = int.from_bytes(take(size), "little", signed=signed)
        if kind == "c":
            return (head + "c") % chr(number & 0xFF)
        return (head + (kind if kind in "xXo" else "d")) % _narrowed(number, length, signed)


def _narrowed(number: int, length: str, signed: bool) -> int:
    """The number cut to the width that `h` and `hh` name."""
    bits = {"h": 16, "hh": 8}.get(length)
    if bits is None:
        return number
    number &= (1 << bits) - 1
    return number - (number >> (bits - 1) << bits) if signed else number
