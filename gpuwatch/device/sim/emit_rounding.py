"""Operations in the rounding modes rz, rm and rp: functions that set the host's mode around one."""

from __future__ import annotations

from gpuwatch.device.sim.emitter import Emitter
from gpuwatch.device.sim.ir import SUFFIX, vector

MODES = {"rz": 0, "rp": 2, "rm": 3}
"""LLVM's numbers of the directed modes."""
_NEAREST = 1


def mode_of(tokens: tuple[str, ...]) -> str:
    """The opcode's directed mode, or "rn"."""
    return next((token for token in tokens if token in MODES), "rn")


def directed(e: Emitter, operation: str, scalar: str, mode: str, *values: str) -> str:
    """`operation` (fadd, fsub, fmul, fdiv, fma or sqrt) on vectors of `scalar`."""
    intrinsic = f"{operation}.v32{SUFFIX[scalar]}"
    return _call(e, intrinsic, mode, scalar, [(vector(scalar), value) for value in values])


def convert(e: Emitter, operation: str, source: str, value: str, target: str, mode: str) -> str:
    """`operation` (fptrunc, sitofp or uitofp) from LLVM type `source` to `target`."""
    intrinsic = f"{operation}.v32{SUFFIX[target]}.v32{SUFFIX.get(source, source)}"
    return _call(e, intrinsic, mode, target, [(vector(source), value)])


def _call(
    e: Emitter, intrinsic: str, mode: str, result: str, arguments: list[tuple[str, str]]
) -> str:
    name = f"{intrinsic}.{mode}"
    if name not in e.ir.functions:
        kinds = [kind for kind, _ in arguments]
        e.ir.functions[name] = _definition(name, intrinsic, mode, vector(result), kinds)
        full = f"llvm.experimental.constrained.{intrinsic}"
        e.ir.declarations.add("declare void @llvm.set.rounding(i32)")
        e.ir.declarations.add(
            f"declare {vector(result)} @{full}({', '.join(kinds)}, metadata, metadata)"
        )
    return e.ir.call(vector(result), name, arguments)


def _definition(name: str, intrinsic: str, mode: str, result: str, kinds: list[str]) -> str:
    given = ", ".join(f"{kind} %v{k}" for k, kind in enumerate(kinds))
    return f"""
define internal {result} @{name}({given}) noinline nounwind strictfp {{
  call void @llvm.set.rounding(i32 {MODES[mode]}) strictfp
  %r = call {result} @llvm.experimental.constrained.{intrinsic}({given}, \
metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp
  call void @llvm.set.rounding(i32 {_NEAREST}) strictfp
  ret {result} %r
}}
"""
