"""Operands of the probed instruction as values of the probe language.

8- and 16-bit registers are widened; of f64 and of packed types the value is the bit pattern.
"""

from __future__ import annotations

from gpuwatch.errors import UserError
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.scene import Scene
from gpuwatch.instrument.subject import Part
from gpuwatch.instrument.values import Value, constant
from gpuwatch.ptx.types import TYPE_BITS

_MOVED = {"pred": ("pred", "mov.pred"), "8": ("b16", "cvt.u16.u8"), "16": ("b16", "mov.b16"),
          "32": ("u32", "mov.b32"), "64": ("u64", "mov.b64")}  # fmt: skip
"""How to copy a register, by its type or else its width: the copy's class, the instruction."""


def out(code: Code, scene: Scene) -> Value:
    """What the instruction has written."""
    if scene.probe.before:
        raise refusal(scene, "out", "it has not run yet", "probe behind it, with before=False")
    return _value(code, scene, "out", part(scene, "out"))


def source(code: Code, scene: Scene, name: str) -> Value:
    """What the instruction reads (or has read): `name` is in1, in2 or in3."""
    return _value(code, scene, name, part(scene, name))


def address(code: Code, scene: Scene) -> Value:
    """u64: base plus offset of the access, as they were before it, in its own state space."""
    base = part(scene, "base", "addr")
    assert scene.subject
    offset = scene.subject.offset
    if base.kind == "integer":
        return Value(code.compute("u64", "add.u64", base.text, offset or "0"), "u64")
    if base.kind == "register" and TYPE_BITS[base.declared] == 32:
        narrow = _text(scene, "base", base)
        if offset:
            narrow = code.compute("u32", "add.u32", narrow, offset)
        return Value(code.compute("u64", "cvt.u64.u32", narrow), "u64")
    wide = _text(scene, "base", base)
    if base.kind == "symbol":
        wide = code.compute("u64", "mov.u64", wide)
    return Value(code.compute("u64", "add.s64", wide, offset) if offset else wide, "u64")


def size(code: Code, scene: Scene) -> Value:
    """Bytes that this thread moves; of an asynchronous copy, those that it reads."""
    subject = scene.subject
    if subject is None or "bytes" in subject.missing:
        part(scene, "bytes")
    assert subject
    moved = constant(subject.bytes or 0)
    if "size" in subject.parts:
        moved = _value(code, scene, "size", subject.parts["size"])
    if "ignored" not in subject.parts:
        return moved
    ignored = _text(scene, "ignored", subject.parts["ignored"])
    return Value(code.compute("u32", "selp.b32", "0", moved.text, ignored), "u32")


def part(scene: Scene, name: str, helper: str = "") -> Part:
    """A part of the instruction; raises UserError where there is none, and says why."""
    helper = helper or name
    if scene.subject is None:
        raise UserError(
            f"the helper {helper} cannot be used at position {scene.probe.position}",
            hint='it speaks of an instruction: use a position such as "ld.global"',
            at=scene.probe.at,
        )
    if name not in scene.subject.parts:
        reason = scene.subject.missing.get("addr" if name == "base" else helper, "")
        raise refusal(scene, helper, reason, "use a position that leaves this instruction out")
    return scene.subject.parts[name]


def refusal(scene: Scene, helper: str, reason: str, hint: str) -> UserError:
    """That a helper cannot be had at an instruction."""
    opcode = scene.subject.opcode if scene.subject else ""
    return UserError(
        f"there is no {helper} at {opcode} (PTX line {scene.line}): {reason}",
        hint=hint,
        at=scene.probe.at,
    )


def _text(scene: Scene, name: str, operand: Part) -> str:
    """The operand's text, or its copy where the instruction has overwritten it since."""
    subject = scene.subject
    assert subject
    if scene.earlier is None or name not in subject.overwritten:
        return operand.text
    key = operand.declared if operand.declared == "pred" else str(TYPE_BITS[operand.declared])
    type_, instruction = _MOVED[key]
    return scene.earlier.once(f"part {name}", type_, instruction, operand.text)


def _value(code: Code, scene: Scene, name: str, operand: Part) -> Value:
    match operand.kind:
        case "integer":
            return constant(operand.value)
        case "float":
            return Value(code.compute("f32", "mov.f32", operand.text), "f32")
        case "symbol":
            return Value(code.compute("u64", "mov.u64", operand.text), "u64")
        case "special":
            type_ = "u64" if TYPE_BITS.get(operand.taken) == 64 else "u32"
            return Value(code.compute(type_, f"mov.{type_}", operand.text), type_)
        case "negated":
            text = _text(scene, name, operand)
            return Value(code.compute("pred", "not.pred", text), "pred")
    if operand.declared == "pred":
        return Value(_text(scene, name, operand), "pred")
    bits = TYPE_BITS.get(operand.declared, 0)
    if bits not in _READERS:
        raise refusal(
            scene, name, f"{operand.text} is a .{operand.declared}", "read another operand"
        )
    return _READERS[bits](code, scene, name, operand)


def _narrow(code: Code, scene: Scene, name: str, operand: Part) -> Value:
    """8 or 16 bits, widened by the sign with which the instruction takes them."""
    text = _text(scene, name, operand)
    if not operand.declared.startswith(("b", "u", "s")):
        text = code.compute("b16", "mov.b16", text)
    signed = "s" if operand.taken.startswith("s") else "u"
    source = f"{signed}{TYPE_BITS[operand.declared]}"
    if text != operand.text:
        source = f"{signed}16"
    type_ = f"{signed}32"
    return Value(code.compute(type_, f"cvt.{type_}.{source}", text), type_)


def _word(code: Code, scene: Scene, name: str, operand: Part) -> Value:
    text = _text(scene, name, operand)
    if operand.declared == "f32" and text != operand.text:
        text = code.compute("f32", "mov.b32", text)
    if "f32" in (operand.declared, operand.taken):
        return Value(text, "f32")
    if not operand.declared.startswith(("b", "u", "s")):
        text = code.compute("u32", "mov.b32", text)
    return Value(text, "s32" if operand.taken == "s32" else "u32")


def _double_word(code: Code, scene: Scene, name: str, operand: Part) -> Value:
    text = _text(scene, name, operand)
    if not operand.declared.startswith(("b", "u", "s")):
        text = code.compute("u64", "mov.b64", text)
    signed = operand.taken.startswith("s") and operand.taken != ""
    return Value(text, "s64" if signed else "u64")


_READERS = {8: _narrow, 16: _narrow, 32: _word, 64: _double_word}
"""How a register is read, by its width."""
