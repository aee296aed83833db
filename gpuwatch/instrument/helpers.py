"""What the helpers of the probe language read."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.errors import UserError
from gpuwatch.instrument import indices, operands, warp_access
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.scene import Scene
from gpuwatch.instrument.subject import SOURCES
from gpuwatch.instrument.values import Value

SPECIAL = {
    "clock": ("u64", "%clock64"),
    "time": ("u64", "%globaltimer"),
    "smid": ("u32", "%smid"),
    "cuid": ("u32", "%smid"),
    "laneid": ("u32", "%laneid"),
    **{
        f"{ours}_{axis}": ("u32", f"%{theirs}.{axis}")
        for ours, theirs in (
            ("thread", "tid"),
            ("block", "ctaid"),
            ("block_dim", "ntid"),
            ("grid_dim", "nctaid"),
        )
        for axis in "xyz"
    },
}
"""Helpers that are one special register, with its type."""

ACTIVE = "helper active"
"""Key of the count of lanes that came to the place, in a code's memo."""


def active(code: Code) -> Value:
    """u32: the number of lanes that came to this place together.

    It has to be asked for first where no lane has branched off yet; later calls give the same.
    """
    if ACTIVE not in code.memo:
        code.memo[ACTIVE] = code.compute("u32", "popc.b32", indices.active(code))
    return Value(code.memo[ACTIVE], "u32")


def _source(name: str) -> Callable[[Code, Scene], Value]:
    return lambda code, scene: operands.source(code, scene, name)


def _site(code: Code, scene: Scene) -> Value:
    return Value(code.compute("u32", "mov.u32", scene.site), "u32")


COMPUTED: dict[str, Callable[[Code, Scene], Value]] = {
    "warpid": lambda code, _scene: Value(indices.warp(code), "u64"),
    "block": lambda code, _scene: Value(indices.block(code), "u64"),
    "thread": lambda code, _scene: Value(indices.thread(code), "u32"),
    "active": lambda code, _scene: active(code),
    "site": _site,
    "addr": operands.address,
    "bytes": operands.size,
    "out": operands.out,
    "sectors": warp_access.sectors,
    "bank_conflicts": warp_access.bank_conflicts,
    **{name: _source(name) for name in SOURCES},
}


def helper(code: Code, scene: Scene, name: str, into: str | None, wanted: str) -> Value:
    """The value of a helper; raises UserError for one that cannot be had at this place."""
    if name in SPECIAL:
        type_, register = SPECIAL[name]
        target = into if type_ == wanted else None
        return Value(code.compute(type_, f"mov.{type_}", register, into=target), type_)
    if name in COMPUTED:
        return COMPUTED[name](code, scene)
    raise UserError(
        f"the helper {name} cannot be used at position {scene.probe.position}",
        hint=f"use one of {', '.join(sorted((*SPECIAL, *COMPUTED)))}",
        at=scene.probe.at,
    )
