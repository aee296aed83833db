"""Programs that are already built: their PTX, and whether their runtime can be replaced; the
sections of an ELF file and the entries of fat binaries, wherever they lie."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard

from gpuwatch.errors import UserError

_MAGIC = b"\x7fELF"
_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
_FATBIN = 0xBA55ED50
PTX = 1
"""Kind of an entry that holds PTX; others hold machine code."""
_ENTRY_VERSION = 0x0101
_ENTRY_HEADER = 64
"""Bytes that the header of an entry has at least."""
_MOST_TEXT = 1 << 30
"""Bytes of unpacked PTX; entries that say more are damaged."""
_LZ4, _ZSTD = 0x2000, 0x8000
"""Flags of a compressed entry; seen in what nvcc 13.0 writes by --compress-mode."""
_REBUILD = "build it with `nvcc -cudart shared -arch=sm_NN`, which embeds PTX"


def is_program(path: Path) -> bool:
    """Whether `path` is a compiled program rather than a text."""
    with path.open("rb") as file:
        return file.read(4) == _MAGIC


def require_shared_runtime(program: Path, library: str) -> None:
    """Raises UserError unless `program` loads `library`, like "libcudart.so.13", when it starts."""
    needed = _elf(program).needed()
    if library in needed:
        return
    other = next((name for name in needed if name.startswith("libcudart.so")), None)
    if other is not None:
        raise UserError(
            f"{program.name} was built with {other}, and the toolkit here has {library}",
            hint="build it with this toolkit, or name its own with --cuda-home",
        )
    raise UserError(
        f"{program.name} has the CUDA runtime linked in statically, so it cannot be replaced",
        hint="build it with `nvcc -cudart shared`, or name its source instead",
    )


def embedded_ptx(program: Path, arch: str) -> list[str]:
    """The PTX texts in `program` that `arch` ("sm_86") can run, one for each module.

    Each is the one of its module for the highest target not above `arch`. Raises UserError when
    there is none.
    """
    elf = _elf(program)
    wanted = int("".join(c for c in arch if c.isdigit()))
    texts, targets = [], set()
    for section in _SECTIONS:
        for container in fat_binaries(elf.section(section)):
            entries = [entry for entry in container if entry.kind == PTX]
            targets |= {entry.arch for entry in entries}
            fitting = [entry for entry in entries if entry.arch <= wanted]
            if fitting:
                texts.append(max(fitting, key=lambda entry: entry.arch).text(program.name))
    if texts:
        return texts
    if targets:
        lowest = f"sm_{min(targets)}"
        raise UserError(
            f"{program.name} has PTX for {lowest} and above, not for {arch}",
            hint="build it with -arch=" + arch + ", or choose another device with -d",
        )
    raise UserError(f"{program.name} holds no PTX", hint=_REBUILD)


@dataclass(frozen=True, slots=True)
class FatEntry:
    """One image of a fat binary: PTX or machine code for the target `arch` (86 for sm_86)."""

    kind: int
    arch: int
    flags: int
    full_size: int
    payload: bytes

    def text(self, name: str) -> str:
        """The PTX text. Raises UserError, which calls the file `name`, when it is damaged or
        packed in an unknown way."""
        try:
            raw = self._unpacked()
        except (zstandard.ZstdError, IndexError, MemoryError) as problem:
            raise _damaged(f"the PTX in {name}") from problem
        text = raw.rstrip(b"\0").decode(errors="replace")
        if ".version" not in text:
            raise UserError(
                f"the PTX in {name} is packed in a way that is not known here",
                hint="build it with --no-compress",
            )
        return text

    def _unpacked(self) -> bytes:
        raw = self.payload
        if self.flags & _ZSTD:
            if max(self.full_size, zstandard.frame_content_size(raw)) > _MOST_TEXT:
                raise MemoryError
            return zstandard.ZstdDecompressor().decompress(raw, max_output_size=self.full_size)
        return _unpacked_lz4(raw, self.full_size) if self.flags & _LZ4 else raw


def fat_binaries(raw: bytes) -> Iterator[list[FatEntry]]:
    """The fat binaries in a section or a file, each as its entries; bare entries are one.

    A fat binary begins with magic, version, header and body size. What is none is passed over.
    """
    if _begins_with_entry(raw):
        yield list(_entries(raw))
        return
    at = 0
    while at + 16 <= len(raw):
        magic, _, header, size = struct.unpack_from("<IHHQ", raw, at)
        if magic != _FATBIN or header < 16:
            at += 8
            continue
        yield list(_entries(raw[at + header : at + header + size]))
        at += header + size


def _begins_with_entry(raw: bytes) -> bool:
    if len(raw) < _ENTRY_HEADER:
        return False
    version, header = struct.unpack_from("<HI", raw, 2)
    return bool(version == _ENTRY_VERSION and header >= _ENTRY_HEADER)


def _entries(body: bytes) -> Iterator[FatEntry]:
    """Entries: kind at byte 0, version at 2, header size at 4, padded size at 8, packed size at
    16, target at 28, flags at 40, unpacked size at 56."""
    at = 0
    while at + _ENTRY_HEADER <= len(body):
        kind, header, padded, packed = struct.unpack_from("<HxxIQI", body, at)
        arch, flags, full_size = struct.unpack_from("<I8xQ8xQ", body, at + 28)
        if header < _ENTRY_HEADER:
            break
        size = packed or padded
        payload = body[at + header : at + header + size]
        yield FatEntry(kind, arch, flags, full_size, payload)
        at += header + padded


def _unpacked_lz4(packed: bytes, full_size: int) -> bytes:
    """An LZ4 block: literals and repetitions of what came before, in turn. Raises IndexError when
    it is damaged."""
    result = bytearray()
    at = 0
    while at < len(packed):
        token = packed[at]
        literals, at = _length(packed, at + 1, token >> 4)
        result += packed[at : at + literals]
        at += literals
        if len(result) >= full_size or at + 2 > len(packed):
            break
        distance = int.from_bytes(packed[at : at + 2], "little")
        repeated, at = _length(packed, at + 2, token & 15)
        if not 0 < distance <= len(result):
            raise IndexError
        repeated += 4
        again = bytes(result[-distance:])
        result += (again * -(-repeated // distance))[:repeated]
    return bytes(result)


def _length(packed: bytes, at: int, nibble: int) -> tuple[int, int]:
    """A length that goes on in further bytes while they are 255, and where it ends."""
    length = nibble
    more = nibble == 15
    while more:
        length += packed[at]
        more = packed[at] == 255
        at += 1
    return length, at


def _elf(path: Path) -> Elf:
    return Elf(path.read_bytes(), path.name)


def _damaged(what: str) -> UserError:
    return UserError(f"{what} is damaged", hint="build it again")


class Elf:
    """Sections of a 64-bit little-endian ELF file, a program or a cubin."""

    def __init__(self, raw: bytes, name: str) -> None:
        """`name` is the file's, for messages. Raises UserError when `raw` is no such file."""
        self._raw = raw
        if raw[4:6] != b"\x02\x01":
            raise UserError(f"{name} is no 64-bit program for this kind of machine")
        try:
            start, size, count, names = struct.unpack_from("<Q10xHHH", raw, 40)
            headers = [struct.unpack_from("<II4Q", raw, start + size * i) for i in range(count)]
        except (struct.error, OverflowError) as problem:
            raise _damaged(name) from problem
        strings = self._content(headers[names]) if names < count else b""
        self._headers = {self.string(strings, one[0]): one for one in reversed(headers)}

    def section(self, name: str) -> bytes:
        """Content of the section, b"" when there is none."""
        header = self._headers.get(name)
        return self._content(header) if header else b""

    def needed(self) -> list[str]:
        """The shared libraries that the program names."""
        dynamic, strings = self.section(".dynamic"), self.section(".dynstr")
        pairs = struct.iter_unpack("<QQ", dynamic[: len(dynamic) // 16 * 16])
        return [self.string(strings, value) for tag, value in pairs if tag == 1]

    def _content(self, header: tuple[int, ...]) -> bytes:
        offset, size = header[4], header[5]
        return self._raw[offset : offset + size]

    @staticmethod
    def string(table: bytes, at: int) -> str:
        """The string at byte `at` of a string section."""
        return table[at : table.find(b"\0", at)].decode(errors="replace")
