"""Which kernels run block after block, since the order of blocks could show."""

from __future__ import annotations

import pytest

from gpuwatch import ptx
from gpuwatch.device.sim.linking import build_program
from gpuwatch.device.sim.order import must_run_serially

PTX = """.version 8.0
.target sm_86
.address_size 64
.extern .func (.param .b32 result) vprintf (.param .b64 form, .param .b64 given);
.visible .entry k()
{
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<3>;
A:
  BODY
  ret;
}
"""
PRINTS = """{
  .param .b64 form; st.param.b64 [form], %rd1;
  .param .b64 given; st.param.b64 [given], %rd2;
  .param .b32 result; call (result), vprintf, (form, given);
}"""


def polls(space: str) -> str:
    return f"ld.volatile{space}.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra A;"


@pytest.mark.parametrize(
    ("body", "serial"),
    [
        ("st.global.u32 [%rd1], %r1;", False),
        ("atom.global.add.u32 %r1, [%rd1], 1;", True),
        ("atom.add.u32 %r1, [%rd1], 1;", True),
        ("atom.shared.add.u32 %r1, [%rd1], 1;", False),
        ("atom.shared::cta.add.u32 %r1, [%rd1], 1;", False),
        ("red.global.add.u32 [%rd1], 1;", False),
        ("red.global.add.f32 [%rd1], %f1;", True),
        ("red.shared::cta.add.f32 [%rd1], %f1;", False),
        (polls(".global"), True),
        (polls(""), True),
        (polls(".shared::cta"), False),
        (PRINTS, True),
    ],
)
def test_order_of_blocks(body: str, serial: bool) -> None:
    module = ptx.parse(PTX.replace("BODY", body))
    program = build_program(module, module.entries()[0])
    assert must_run_serially(program, "") is serial


def test_atomics_on_words_of_one_block_do_not_count() -> None:
    module = ptx.parse(PTX.replace("BODY", "atom.global.add.u32 %r1, [%rd1], 1;"))
    program = build_program(module, module.entries()[0])
    assert must_run_serially(program, "%own")
    assert not must_run_serially(program, "%rd")
