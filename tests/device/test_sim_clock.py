"""The clock within straight-line code and around stores, and bodies without instructions."""

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


STORES = HEAD + (
    ".visible .entry k(.param .u64 out)\n{\n\t.reg .b64 %rd<9>;\n\t.reg .f32 %f<9>;\n"
    "\tld.param.u64 %rd1, [out];\n\tmov.u64 %rd2, %clock64;\n"
    "STORE\tmov.u64 %rd3, %clock64;\nSTORE\tmov.u64 %rd4, %clock64;\n"
    "\tld.global.f32 %f1, [%rd1];\n\tmov.u64 %rd5, %clock64;\n"
    "\tld.global.f32 %f2, [%rd1];\n\tmov.u64 %rd6, %clock64;\n"
    "\tsub.s64 %rd2, %rd3, %rd2;\n\tsub.s64 %rd3, %rd4, %rd3;\n"
    "\tsub.s64 %rd4, %rd5, %rd4;\n\tsub.s64 %rd5, %rd6, %rd5;\n"
    "\tst.global.u64 [%rd1], %rd2;\n\tst.global.u64 [%rd1+8], %rd3;\n"
    "\tst.global.u64 [%rd1+16], %rd4;\n\tst.global.u64 [%rd1+24], %rd5;\n\tret;\n}\n"
)


@pytest.mark.parametrize(
    "store",
    [
        "st.global.f32 [%rd1], %f1",
        "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], "
        "{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, 16",
    ],
)
def test_stores_go_past_the_l1(store: str) -> None:
    """The second one takes as long as the first, and a load behind them misses."""
    text = STORES.replace("STORE", f"\t{store};\n")
    out = run(text, "k", (1, 1, 1), (32, 1, 1), [np.zeros(128, np.int64)]).buffers[0]
    first, second, missing, hitting = out[:4].tolist()
    assert 0 < first == second
    assert missing > hitting
