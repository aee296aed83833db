"""PTX text of the TOML form, with its names replaced by woven ones."""

from __future__ import annotations

import re

from gpuwatch.instrument import clocks, helpers
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.names import IDENTIFIER
from gpuwatch.instrument.scene import OwnRegister, Scene, Shared
from gpuwatch.instrument.values import Value, convert
from gpuwatch.probe.language import SAVE_WORDS
from gpuwatch.probe.model import Probe, Ptx
from gpuwatch.probe.verify_ptx import DECLARED
from gpuwatch.ptx import isa
from gpuwatch.ptx.model import Instruction, numbered
from gpuwatch.ptx.types import TYPE_BITS

_WIDENED = {"b16": "cvt.u32.u16", "u16": "cvt.u32.u16", "s16": "cvt.s32.s16", "f64": "mov.b64"}
"""How a register of a type that the language does not have is read into one that it has."""


def declare(shared: Shared, probe: Probe) -> list[str]:
    """The `.reg` lines of a probe's own declarations, renamed."""
    lines = []
    for action in probe.body:
        if isinstance(action, Ptx):
            for type_, name, count in action.declarations:
                renamed = own_name(shared, probe, name)
                shared.own[probe.name, name] = OwnRegister(renamed, type_, count)
                lines.append(f"\t.reg .{type_} \t{renamed}{f'<{count}>' if count else ''};")
    return lines


def own_name(shared: Shared, probe: Probe, name: str) -> str:
    """A probe's own register under a name that the module and other probes do not use.

    Both halves of a TOML probe carry its name and share what either declares.
    """
    names = list(dict.fromkeys(each.name for each in shared.program.probes))
    return f"{shared.names.registers}x{names.index(probe.name)}_{name.lstrip('%')}"


def read(code: Code, scene: Scene, name: str) -> Value:
    """The value of a register of the program, or of one that the probe's text declares."""
    if name in scene.shared.registers:
        return scene.shared.registers[name]
    found = _own(scene, name)
    assert found, name
    text, declared = found
    type_ = DECLARED[declared]
    if declared in _WIDENED:
        return Value(code.compute(type_, _WIDENED[declared], text), type_)
    return Value(text, type_)


def substitute(code: Code, scene: Scene, action: Ptx) -> None:
    """Add a run of PTX for one place. What ADDR, OUT and the like stand for is computed in front
    of their instruction."""
    for instruction in action.instructions:
        if scene.shared.short and clocks.is_first_clock(instruction):
            (name,) = isa.registers_of(instruction.operands[:1])
            if name in scene.shared.short:
                clocks.keep_low(code, scene.shared.registers[name])
                continue
        words = {
            name: _operand(code, scene, instruction, name)
            for name in IDENTIFIER.findall(action.text, instruction.start, instruction.end)
            if name in SAVE_WORDS
        }

        def replaced(match: re.Match[str], words: dict[str, str] = words) -> str:
            return _renamed(scene, words, match[0])

        line = action.text[instruction.start : instruction.end]
        code.lines.append("\t" + " ".join(IDENTIFIER.sub(replaced, line).split("\n")))


def _renamed(scene: Scene, words: dict[str, str], name: str) -> str:
    if name in scene.shared.registers:
        return scene.shared.registers[name].text
    if name in words:
        return words[name]
    found = _own(scene, name)
    return found[0] if found else name


def _operand(code: Code, scene: Scene, instruction: Instruction, word: str) -> str:
    """What a word stands for, in the width of the type in which the instruction takes it."""
    value = helpers.helper(code, scene, SAVE_WORDS[word], None, "")
    types = [token for token in instruction.tokens if token in TYPE_BITS]
    taken = types[-1] if types else value.type
    if taken == "pred" or value.type == "pred":
        return convert(code, value, "pred" if taken == "pred" else value.type)
    if TYPE_BITS[taken] == 64:
        return convert(code, value, "s64" if value.type in ("s32", "s64") else "u64")
    whole = taken.startswith(("u", "s"))
    return convert(code, value, "u32" if whole or value.type != "f32" else "f32")


def _own(scene: Scene, name: str) -> tuple[str, str] | None:
    """Woven name and declared type of a register that the probe's text declares."""
    own, probe = scene.shared.own, scene.probe.name
    if found := own.get((probe, name)):
        return found.text, found.type
    family, index = numbered(name)
    found = own.get((probe, family))
    if found and index < found.count:
        return f"{found.text}{index}", found.type
    return None
