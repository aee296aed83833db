"""Memory access timeline: which pages of global memory are used when, as a map of page x time.

Counts the accesses of warps in 256 rows of pages by 128 columns of time. A page has 64 KiB: the
row is the page's number modulo 256, so 16 MiB of memory are told apart. A column is 4.096 us of
the GPU's timer: the column is the time modulo 128 of these, and the report turns the picture so
that the launch begins on the left. Where a warp's lanes touch several pages, the lowest counts.
A longer launch, or more memory, is folded: make the shifts below larger.
"""

import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="kernel", type="hist", scale="linear", cap=32768)
class page_by_time:
    cell: gl.u32


column: gl.u32 = 0
row: gl.u32 = 0


@probe(pos="ld.global:st.global:atom.global:red.global", level="warp", before=True)
def access():
    row = (gl.addr >> 16) & 255
    column = (gl.time() >> 12) & 127
    page_by_time.save(row * 128 + column)
