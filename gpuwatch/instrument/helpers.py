"""What the helpers of the probe language read."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.errors import UserError
from gpuwatch.instrument import indices
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.scene import Scene
from gpuwatch.instrument.values import Value, constant

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


def _active(code: Code, _scene: Scene) -> Value:
    mask = code.compute("u32", "activemask.b32")
    return Value(code.compute("u32", "popc.b32", mask), "u32")


COMPUTED: dict[str, Callable[[Code, Scene], Value]] = {
    "warpid": lambda code, _scene: Value(indices.warp(code), "u64"),
    "block": lambda code, _scene: Value(indices.block(code), "u64"),
    "thread": lambda code, _scene: Value(indices.thread(code), "u32"),
    "active": _active,
    "site": lambda _code, scene: constant(scene.site),
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
