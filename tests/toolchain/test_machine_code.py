"""Machine code as text, and what is read out of it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from rich.console import Console

from gpuwatch.doctor import doctor
from gpuwatch.errors import UserError
from gpuwatch.toolchain import Toolchain, assemble, disassemble, find, read_machine_code
from gpuwatch.toolchain.machine_code import MachineInstruction

TEXT = """\
\t.target\tsm_90

//--------------------- .text.mix                       --------------------------
\t.section\t.text.mix,"ax",@progbits
\t.align\t128
        .global         mix
        .type           mix,@function
mix:
.text.mix:
\t//## File "/src/inner.cuh", line 7 inlined at "/src/mix.cu", line 14
\t//## File "/src/mix.cu", line 14
        /*0000*/                   LDG.E R2, desc[UR6][R4.64] ;
        /*0010*/                   LDG.E.128.CONSTANT R8, desc[UR6][R4.64+0x8] ;
.L_x_1:
\t//## File "/src/mix.cu", line 16
        /*0020*/              @!P0 LDS.U8 R4, [UR4+0x4] ;
        /*0030*/              @!P0 BRA `(.L_x_1) ;
        /*0040*/                   EXIT ;
        .type           $mix$_Z5otherPKfi,@function
        .size           $mix$_Z5otherPKfi,(.L_x_7 - $mix$_Z5otherPKfi)
$mix$_Z5otherPKfi:
\t//## File "/src/mix.cu", line 4
        /*0050*/                   STG.E.64 desc[UR4][R2.64], R2 ;
        /*0060*/                   RET.REL.NODEC R4 `(mix) ;

//--------------------- .text.second                    --------------------------
\t.section\t.text.second,"ax",@progbits
second:
.text.second:
        /*0000*/                   EXIT ;
"""
PTX = """\
.version 8.0
.target sm_86
.address_size 64
.visible .entry copy(.param .u64 to)
{
\t.reg .b64 %rd<2>;
\t.reg .b32 %r<2>;
\tld.param.u64 %rd1, [to];
\tld.global.u32 %r1, [%rd1];
\tst.global.u32 [%rd1+4], %r1;
\tret;
}
"""


@pytest.fixture
def code() -> list[MachineInstruction]:
    return list(read_machine_code(TEXT))


def test_opcodes_come_with_guard_and_offset(code: list[MachineInstruction]) -> None:
    assert [(one.offset, one.guard, ".".join(one.tokens)) for one in code[:4]] == [
        (0x00, "", "LDG.E"),
        (0x10, "", "LDG.E.128.CONSTANT"),
        (0x20, "@!P0", "LDS.U8"),
        (0x30, "@!P0", "BRA"),
    ]


def test_lines_go_from_inlined_code_outwards(code: list[MachineInstruction]) -> None:
    inlined = (("/src/inner.cuh", 7), ("/src/mix.cu", 14))
    assert [one.places for one in code[:3]] == [inlined, inlined, (("/src/mix.cu", 16),)]
    assert code[-1].places == ()


def test_called_functions_are_told_from_the_kernel(code: list[MachineInstruction]) -> None:
    assert [(one.section, one.function) for one in code] == [
        *[("mix", "mix")] * 5,
        *[("mix", "_Z5otherPKfi")] * 2,
        ("second", "second"),
    ]


def test_blocks_end_at_labels_and_branches(code: list[MachineInstruction]) -> None:
    first, second, third, fourth = (code[place].block for place in (1, 2, 4, 5))
    assert code[0].block == first < second == code[3].block < third < fourth


def test_labels_that_nothing_refers_to_end_no_block() -> None:
    text = TEXT.replace(".L_x_1:", ".L_x_1:\n.L_x_4:").replace("`(.L_x_1)", "`(.L_x_9)")
    code = list(read_machine_code(text))
    assert code[0].block == code[3].block < code[4].block
    assert code[5].function == "_Z5otherPKfi"


def test_a_cubin_is_disassembled() -> None:
    cubin = assemble(find(), PTX, "sm_86", "copy").cubin
    opcodes = [one.tokens[0] for one in read_machine_code(disassemble(find(), cubin))]
    assert opcodes.count("LDG") == opcodes.count("STG") == 1


def test_what_is_no_cubin_is_told() -> None:
    with pytest.raises(UserError, match="nvdisasm refused the cubin"):
        disassemble(find(), b"no cubin")


def test_a_disassembler_that_cannot_run_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nvdisasm").write_bytes(b"no program")
    (tmp_path / "nvdisasm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    bare = Toolchain(tmp_path / "nvcc", tmp_path / "ptxas", "13.0", "PATH")
    with pytest.raises(UserError, match="nvdisasm: Exec format error") as refused:
        disassemble(bare, b"")
    assert "pip install nvidia-cuda-nvdisasm" in refused.value.hint


@pytest.mark.parametrize("there", [True, False])
def test_doctor_tells_whether_lines_can_be_marked(
    monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    def absent(_toolchain: Toolchain) -> Path:
        raise UserError("there is no nvdisasm", hint="get it")

    if not there:
        monkeypatch.setattr("gpuwatch.doctor.find_disassembler", absent)
    console = Console(record=True, width=200, quiet=False)
    doctor(console)
    line = next(line for line in console.export_text().splitlines() if "nvdisasm" in line)
    assert line.split()[0] == ("ok" if there else "missing")


def test_without_a_disassembler_the_hint_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    def no_wheel(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", no_wheel)
    bare = Toolchain(tmp_path / "nvcc", tmp_path / "ptxas", "13.0", "PATH")
    with pytest.raises(UserError, match="there is no nvdisasm") as refused:
        disassemble(bare, b"")
    assert "pip install nvidia-cuda-nvdisasm" in refused.value.hint
