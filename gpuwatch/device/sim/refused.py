"""Instructions that the simulator does not execute, and why."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.emitter import Emitter, UnsupportedError
from gpuwatch.ptx.model import Instruction

_TEXTURE = "textures: there are no samplers here"
_SURFACE = "surfaces: there is no surface memory here"
_CLUSTER = "clusters of blocks: a block sees no other block's shared memory here"
_HOPPER = "warpgroup products read through descriptors, which are not modelled"
_BLACKWELL = "tensor memory, which GPUs before sm_100 do not have"
_STACK = "a stack of changing size"
_SCALAR_VIDEO = "scalar video instructions, which no compiler has emitted since sm_30"

REFUSED = {
    **dict.fromkeys(("tex", "tld4", "txq", "istypep"), _TEXTURE),
    **dict.fromkeys(("suld", "sust", "sured", "suq"), _SURFACE),
    **dict.fromkeys(("mapa", "getctarank", "clusterlaunchcontrol"), _CLUSTER),
    "multimem": "memory shared by several GPUs",
    "tensormap": "bulk copies by the tensor memory accelerator",
    "wgmma": _HOPPER,
    "tcgen05": _BLACKWELL,
    **dict.fromkeys(("alloca", "stacksave", "stackrestore"), _STACK),
    "brkpt": "breakpoints of a debugger",
    **dict.fromkeys(
        ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset"), _SCALAR_VIDEO
    ),
}
"""Reason by opcode."""


def _refuse(reason: str) -> Callable[[Emitter, Instruction], None]:
    def emit(_: Emitter, __: Instruction) -> None:
        raise UnsupportedError(reason)

    return emit


OPCODES: dict[str, Callable[[Emitter, Instruction], None]] = {
    opcode: _refuse(reason) for opcode, reason in REFUSED.items()
}
