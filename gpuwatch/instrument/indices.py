"""Where a thread stands in the launch: block, warp and slot indices as PTX.

Linear indices as CUDA counts them, x fastest. A block has at most 1024 threads, so indices
within a block are 32-bit; everything across blocks is 64-bit, computed in 32 where the launch's
shape is known and small enough.
"""

from __future__ import annotations

from math import prod

from gpuwatch.instrument.code import Code

_UNKNOWN = 1 << 32
"""More threads or blocks than are counted in 32 bits."""


def special(code: Code, name: str) -> str:
    """A u32 special register, read once per place."""
    return code.once(name, "u32", "mov.u32", name)


def thread(code: Code) -> str:
    """u32: index of the thread in its block, (tid.z * ntid.y + tid.y) * ntid.x + tid.x."""
    row = code.once(
        "row",
        "u32",
        "mad.lo.u32",
        special(code, "%tid.z"),
        special(code, "%ntid.y"),
        special(code, "%tid.y"),
    )
    return code.once(
        "thread", "u32", "mad.lo.u32", row, special(code, "%ntid.x"), special(code, "%tid.x")
    )


def threads(code: Code) -> str:
    """u32: threads per block."""
    plane = code.once(
        "plane", "u32", "mul.lo.u32", special(code, "%ntid.x"), special(code, "%ntid.y")
    )
    return code.once("threads", "u32", "mul.lo.u32", plane, special(code, "%ntid.z"))


def block(code: Code) -> str:
    """u64: index of the block in the grid."""
    if _length(code, "nctaid") < _UNKNOWN:
        return _widened(code, "block", _narrow_block(code))
    column = code.once("column", "u64", "cvt.u64.u32", special(code, "%ctaid.x"))
    return code.once(
        "block", "u64", "mad.wide.u32", _rows(code), special(code, "%nctaid.x"), column
    )


def _rows(code: Code) -> str:
    """u32: y and z of the block are below 65536."""
    return code.once(
        "rows",
        "u32",
        "mad.lo.u32",
        special(code, "%ctaid.z"),
        special(code, "%nctaid.y"),
        special(code, "%ctaid.y"),
    )


def _narrow_block(code: Code) -> str:
    return code.once(
        "narrow block",
        "u32",
        "mad.lo.u32",
        _rows(code),
        special(code, "%nctaid.x"),
        special(code, "%ctaid.x"),
    )


def _length(code: Code, of: str) -> int:
    """How many threads a block ("ntid") or blocks the grid ("nctaid") has."""
    if f"%{of}.x" not in code.known:
        return _UNKNOWN
    return prod(int(code.known[f"%{of}.{axis}"]) for axis in "xyz")


def _widened(code: Code, key: str, narrow: str) -> str:
    wide = code.once(key, "u64", "cvt.u64.u32", narrow)
    code.narrow[wide] = narrow
    return wide


def _within_grid(code: Code, key: str, per_block: str, offset: str) -> str:
    """u64: block * per_block + offset, the last two u32 and at most the threads of a block."""
    if _length(code, "nctaid") * _length(code, "ntid") < _UNKNOWN:
        narrow = code.once(
            f"narrow {key}", "u32", "mad.lo.u32", _narrow_block(code), per_block, offset
        )
        return _widened(code, key, narrow)
    if key not in code.memo:
        wide = code.compute("u64", "cvt.u64.u32", per_block)
        more = code.compute("u64", "cvt.u64.u32", offset)
        code.memo[key] = code.compute("u64", "mad.lo.u64", block(code), wide, more)
    return code.memo[key]


def warps(code: Code) -> str:
    """u32: warps per block."""
    padded = code.once("padded threads", "u32", "add.u32", threads(code), "31")
    return code.once("warps", "u32", "shr.u32", padded, "5")


def warp_in_block(code: Code) -> str:
    """u32: index of the warp in its block."""
    return code.once("warp in block", "u32", "shr.u32", thread(code), "5")


def warp(code: Code) -> str:
    """u64: global, persistent warp ID: block * ceil(threads / 32) + thread / 32."""
    return _within_grid(code, "warp", warps(code), warp_in_block(code))


def global_thread(code: Code) -> str:
    """u64: block * threads per block + thread."""
    return _within_grid(code, "global thread", threads(code), thread(code))


def has_whole_warps(code: Code) -> bool:
    """Whether every warp of the launch is known to begin with 32 lanes."""
    threads_known = _length(code, "ntid")
    return threads_known < _UNKNOWN and threads_known % 32 == 0


def lanes(code: Code) -> str:
    """u32: lanes of this warp that the launch started; fewer than 32 in a block's last warp."""
    if has_whole_warps(code):
        return "32"
    if "lanes" not in code.memo:
        first = code.compute("u32", "and.b32", thread(code), "-32")
        left = code.compute("u32", "sub.u32", threads(code), first)
        code.memo["lanes"] = code.compute("u32", "min.u32", left, "32")
    return code.memo["lanes"]


def lane(code: Code) -> str:
    """u32: the thread's place in its warp."""
    x = code.known.get("%ntid.x", "1")
    if int(x) % 32 == 0:  # then rows of threads are whole warps
        return code.once("lane", "u32", "and.b32", special(code, "%tid.x"), "31")
    return special(code, "%laneid")


def active(code: Code) -> str:
    """u32: mask of the lanes that run this code together."""
    return code.once("active lanes", "u32", "activemask.b32")


def active_count(code: Code) -> str:
    """u32: how many lanes run this code together."""
    return code.once("lanes here", "u32", "popc.b32", active(code))


def lower_lanes(code: Code) -> str:
    """u32: mask of the lower ones among the lanes that run this code together."""
    if "lower lanes" not in code.memo:
        mask = active(code)
        below = special(code, "%lanemask_lt")
        code.memo["lower lanes"] = code.compute("u32", "and.b32", below, mask)
    return code.memo["lower lanes"]


def leads(code: Code) -> str:
    """pred: whether this is the lowest of the lanes that run this code together."""
    if "leads" not in code.memo:
        others = lower_lanes(code)
        code.memo["leads"] = code.compute(
            "pred", "setp.eq.u32", others, "0", into=code.keep("leads")
        )
    return code.memo["leads"]
