"""The probe file that `gpuwatch probes new` writes for its user to change."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.errors import UserError

SKELETON = '''\
"""Loads of global memory per source line, and how long each warp was in the kernel."""

import gpuwatch.language as gl

from gpuwatch import Map, probe

# This file is read, never executed. probes/README.md has the whole language.


# A map keeps what probes save. One of type "reduce" has a record for each line (or warp, block,
# sm, site, kernel) and combines each field over all saves: sum, min or max.
@Map(level="line", type="reduce")
class loads:
    count: gl.u64 = sum
    bytes: gl.u64 = sum


# One of type "array" keeps records as they are saved: here one (cap=1) for each warp. The fields
# start, elapsed and cuid (the SM) are what gpuwatch draws occupancy and timelines from.
@Map(level="warp", type="array", cap=1)
class times:
    start: gl.u64
    elapsed: gl.u32
    cuid: gl.u32


# A register of every thread, 0 when the kernel starts.
came: gl.u64 = 0


# First thing in the kernel.
@probe(pos="kernel", level="warp", before=True)
def arrive():
    came = gl.clock()


# At the end of the kernel. save takes one value for each field, in order.
@probe(pos="kernel", level="warp")
def leave():
    times.save(came, gl.clock() - came, gl.cuid())


# At each load of global memory, in every thread; leads is 1 in one lane of those that come
# together, so count is the number of times that a warp loads. Other places to try:
# "st.global", "ld.shared:st.shared", "branch", "line:42".
@probe(pos="ld.global", level="thread", before=True)
def load():
    loads.save(gl.leads, gl.bytes)
'''


def write_new_probe(name: str) -> Path:
    """Writes the skeleton to `name`, with .py behind it where it has no suffix; gives the file.

    Raises UserError for another suffix, for a file that exists, and for what cannot be written.
    """
    path = Path(name)
    if path.name and not path.suffix and not path.name.endswith("."):
        path = path.with_suffix(".py")
    if path.suffix != ".py":
        raise UserError(
            f"a new probe is written in Python form, to a file that ends in .py: {name!r}",
            hint="gpuwatch probes new my_probe.py",
        )
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(SKELETON)
    except FileExistsError as problem:
        raise UserError(f"{path} exists", hint="name another file") from problem
    except (OSError, ValueError) as problem:
        raise UserError(
            f"cannot write {path}: {getattr(problem, 'strerror', None) or problem}",
            hint="name a file in a folder that exists and that you may write to",
        ) from problem
    return path
