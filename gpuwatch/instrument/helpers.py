"""What the helpers of the probe language read."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.errors import UserError
from gpuwatch.instrument import clocks, indices, operands, saves, warp_access
from gpuwatch.instrument.code import Code
from gpuwatch.instrument.scene import Scene
from gpuwatch.instrument.subject import SOURCES
from gpuwatch.instrument.values import Value, convert

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
        code.memo[ACTIVE] = indices.active_count(code)
    return Value(code.memo[ACTIVE], "u32")


LEADS = "helper leads"
"""Key, in a code's memo, of whether this is the lowest of the lanes that came to the place."""


def leads(code: Code) -> Value:
    """pred: whether this is the lowest of the lanes that came to this place together. Like
    `active` it has to be asked for first where no lane has branched off yet."""
    if LEADS not in code.memo:
        code.memo[LEADS] = indices.leads(code)
    return Value(code.memo[LEADS], "pred")


SPLITS = "helper splits"


def taken(code: Code, scene: Scene) -> Value:
    """pred: whether the lane takes the conditional branch that it has come to."""
    subject = scene.subject
    assert subject
    move = "not.pred" if subject.negated else "mov.pred"
    return Value(code.once("helper taken", "pred", move, subject.guard), "pred")


def splits(code: Code, scene: Scene) -> Value:
    """pred: whether some of the lanes that came to the branch together take it and some do not."""
    if SPLITS not in code.memo:
        mask = indices.active(code)
        ways = code.compute("u32", "vote.sync.ballot.b32", taken(code, scene).text, mask)
        some = code.compute("pred", "setp.ne.u32", ways, "0")
        code.memo[SPLITS] = code.compute("pred", "setp.ne.and.u32", ways, mask, some)
    return Value(code.memo[SPLITS], "pred")


def arrived(code: Code, scene: Scene) -> Value:
    """u64: the clock, read when what the instruction writes is there.

    Waiting for a value takes an instruction that uses it. This is a `bar.warp.sync` of the lanes
    that are here; the value goes into its mask with all bits cleared, by a bit that is zero in
    every address of a map, which ptxas cannot know.
    """
    value = operands.out(code, scene)
    low = convert(code, value, "u32")
    pointer = saves.buffer_address(code, scene.shared, 0)
    aligned = code.compute("u32", "cvt.u32.u64", pointer)
    zero = code.compute("u32", "and.b32", aligned, "1")
    nothing = code.compute("u32", "and.b32", low, zero)
    mask = code.compute("u32", "or.b32", indices.active(code), nothing)
    code.emit(f"bar.warp.sync \t{mask}")
    return Value(code.compute("u64", "mov.u64", "%clock64"), "u64")


def _source(name: str) -> Callable[[Code, Scene], Value]:
    return lambda code, scene: operands.source(code, scene, name)


def _site(code: Code, scene: Scene) -> Value:
    return Value(code.compute("u32", "mov.u32", scene.site), "u32")


COMPUTED: dict[str, Callable[[Code, Scene], Value]] = {
    "warpid": lambda code, _scene: Value(indices.warp(code), "u64"),
    "block": lambda code, _scene: Value(indices.block(code), "u64"),
    "thread": lambda code, _scene: Value(indices.thread(code), "u32"),
    "active": lambda code, _scene: active(code),
    "leads": lambda code, _scene: leads(code),
    "taken": taken,
    "splits": splits,
    "arrived": arrived,
    "site": _site,
    "addr": operands.address,
    "bytes": operands.size,
    "out": operands.out,
    "sectors": warp_access.sectors,
    "bank_conflicts": warp_access.bank_conflicts,
    **{name: _source(name) for name in SOURCES},
}


ASKED_FIRST: dict[str, Callable[[Code, Scene], Value]] = {
    name: COMPUTED[name] for name in ("active", "leads", "splits")
}
"""Helpers about the lanes that came to a place, to be asked for before any branches off."""


def helper(code: Code, scene: Scene, name: str, into: str | None, wanted: str) -> Value:
    """The value of a helper; raises UserError for one that cannot be had at this place."""
    if name == "clock" and (now := clocks.clock(code)):
        return Value(now, "u64")
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
