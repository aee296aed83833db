"""Instructions of machine code out of nvdisasm's text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_SECTION = re.compile(r"\.section\s+\.text\.([^,\s]+)")
_FUNCTION = re.compile(r"\$?([\w.$]+):\s*$")
_LINE = re.compile(r'//## File "([^"]*)", line (\d+)(?: inlined at "[^"]*", line \d+)?')
_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:(@!?\w+)\s+)?([A-Z][\w.]*)")
_INNER = re.compile(r"\.L_\w+")
"""Labels that are none of a function."""
_ENDS = frozenset(("BRA", "BRX", "BRXU", "JMP", "JMX", "EXIT", "RET", "CALL"))
"""Opcodes behind which other lanes may go on, or none."""


@dataclass(frozen=True, slots=True)
class MachineInstruction:
    """`tokens` is the opcode split at its dots: ("LDG", "E", "128")."""

    section: str
    """The kernel, or the function with a section of its own, that it was compiled into."""
    function: str
    """Linker name of the function that it belongs to: the section's, or one called there."""
    offset: int
    guard: str
    """`@P0`, `@!P0` or ""."""
    tokens: tuple[str, ...]
    places: tuple[tuple[str, int], ...]
    """(File, line), the innermost first, then where each was inlined; () where that is not
    known."""
    block: int
    """Grows by one at least with each basic block of the text."""


def read_machine_code(text: str) -> Iterator[MachineInstruction]:
    """The instructions in the order of the text. A label to which none of them refers begins no
    block."""
    lines = text.split("\n")
    targets = {name for line in lines if "/*" in line for name in _INNER.findall(line)}
    section = function = ""
    places: list[tuple[str, int]] = []
    ended = True
    block = 0
    for line in lines:
        if (place := _LINE.search(line)) is not None:
            places = [] if ended else places
            places.append((place[1], int(place[2])))
            ended = "inlined at" not in place[0]
        elif (code := _INSTRUCTION.search(line)) is not None:
            tokens = tuple(code[3].split("."))
            yield MachineInstruction(
                section, function, int(code[1], 16), code[2] or "", tokens, tuple(places), block
            )
            block += tokens[0] in _ENDS
        elif (named := _SECTION.search(line)) is not None:
            section = function = named[1]
            places, ended = [], True
        elif (label := _FUNCTION.match(line)) is not None:
            inner = _INNER.match(line)
            block += inner is None or inner[0] in targets
            if inner is None:
                function = label[1].removeprefix(f"{section}$").removeprefix(".text.")
