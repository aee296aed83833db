"""Peak memory and time of very large grids on the simulated device.

    python tests/benchmarks/sim_memory.py [BLOCKS]

Runs a kernel that does nearly nothing with 1,000,000 blocks of 256 threads, without and with a
map of one record a warp, each in a process of its own. Prints resident memory in MB before the
launch (interpreter, libraries, compiler), at the peak, and the buffers and maps in between.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np

from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.launch.model import Launch

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .global .align 8 .u64 maps[1];
.visible .entry tiny()
{
\t.reg .b32 %r<6>;
\t.reg .b64 %rd<6>;
\t.reg .pred %p<2>;
\tmov.u32 %r1, %ctaid.x;
\tmov.u32 %r2, %tid.x;
\tand.b32 %r3, %r2, 31;
\tsetp.ne.u32 %p1, %r3, RECORDS;
\t@%p1 bra DONE;
\tld.global.u64 %rd1, [maps];
\tshr.u32 %r4, %r2, 5;
\tmad.lo.u32 %r5, %r1, 8, %r4;
\tmul.wide.u32 %rd2, %r5, 16;
\tadd.s64 %rd3, %rd1, %rd2;
\tmov.u64 %rd4, %clock64;
\tst.global.u64 [%rd3], %rd4;
\tst.global.u64 [%rd3+8], %rd4;
DONE:
\tret;
}
"""
MEGABYTE = 1 << 20


def peak() -> int:
    """Resident kilobytes at the peak so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure(blocks: int, *, with_map: bool) -> str:
    size = blocks * 8 * 16 if with_map else 16
    text = PTX.replace("RECORDS", "0" if with_map else "32")
    launch = Launch("tiny", (blocks, 1, 1), (256, 1, 1), 0, (), b"", (), [])
    image = KernelImage("tiny", text, b"", 16, 0, "maps")
    kernel = open_sim("a10", timeout=300.0).load(image, launch, [size])
    before = peak()
    begin = time.perf_counter()
    kernel.run()
    seconds = time.perf_counter() - begin
    records = np.count_nonzero(kernel.read_map(0).view(np.uint64)[::2])
    more = (peak() - before) / 1024
    return (
        f"{blocks:,} blocks, map {size / MEGABYTE:6.1f} MB: {seconds:5.2f} s, before "
        f"{before / 1024:6.1f} MB, launch {more:6.1f} MB more, {records:,} records"
    )


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["measure"]:
        print(measure(int(arguments[1]), with_map=arguments[2] == "map"))
        return
    blocks = arguments[0] if arguments else "1000000"
    for kind in ("plain", "map"):
        subprocess.run([sys.executable, __file__, "measure", blocks, kind], check=True)


if __name__ == "__main__":
    main()
