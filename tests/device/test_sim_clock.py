"""The clock within straight-line code, and bodies without instructions."""

from __future__ import annotations

import numpy as np
import pytest
from sim_support import run

HEAD = ".version 8.0\n.target sm_86\n.address_size 64\n"
CLOCKS = HEAD + (
    ".visible .entry k(.param .u64 out)\n{\n\t.reg .b64 %rd<9>;\n\t.reg .f32 %f<9>;\n"
    "\tld.param.u64 %rd1, [out];\n\tmov.u64 %rd2, %clock64;\n"
    "WORK\tmov.u64 %rd3, %clock64;\n\tsub.s64 %rd4, %rd3, %rd2;\n"
    "\tst.global.u64 [%rd1], %rd4;\n\tret;\n}\n"
)


def elapsed(work: str) -> int:
    out = run(CLOCKS.replace("WORK", work), "k", (1, 1, 1), (1, 1, 1), [np.zeros(1, np.int64)])
    return int(out.buffers[0][0])


@pytest.mark.parametrize("body", ["", "\tret;\n", "\t.reg .b32 %r<3>;\n"])
def test_empty_bodies(body: str) -> None:
    outcome = run(f"{HEAD}.visible .entry k()\n{{\n{body}}}\n", "k", (3, 1, 1), (40, 1, 1), [])
    assert outcome.seconds > 0


def test_straight_line_code_takes_time_between_two_reads_of_the_clock() -> None:
    step = "\tfma.rn.f32 %f1, %f1, %f1, %f1;\n"
    none, some, more = elapsed(""), elapsed(step * 8), elapsed(step * 16)
    assert 0 < none < some < more
