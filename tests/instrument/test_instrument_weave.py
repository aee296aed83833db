"""Weaving of entry and exit probes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpuwatch.errors import UserError
from gpuwatch.instrument import lay_out, weave
from gpuwatch.instrument.model import Woven
from gpuwatch.probe.model import (
    Assign,
    Binary,
    Field,
    Helper,
    Map,
    Probe,
    ProbeRegister,
    Program,
    Read,
    Save,
)
from gpuwatch.ptx import parse
from gpuwatch.toolchain import find

HEADER = ".version 9.0\n.target {arch}\n.address_size 64\n"
KERNELS = {
    "no parameter, exit": ".visible .entry k(\n)\n{\n\texit;\n}\n",
    "predicated exit": (
        ".visible .entry k(.param .u32 n\n)\n{\n\t.reg .pred %p<2>;\n\t.reg .b32 %r<3>;\n"
        "\tmov.u32 %r1, %tid.x;\n\tld.param.u32 %r2, [n];\n\tsetp.ge.u32 %p1, %r1, %r2;\n"
        "\t@%p1 ret;\n\tbar.sync 0;\n\t@!%p1 exit;\n\tret;\n}\n"
    ),
    "falls through": ".visible .entry k(\n)\n{\n\tbar.sync 0;\n}\n",
    "names taken": (
        ".visible .global .u32 gpuwatch_maps;\n"
        ".visible .entry k(\n)\n{\n\t.reg .b32 %gpwr<3>;\n\tmov.u32 %gpwr1, 1;\n\tret;\n}\n"
    ),
}


def scheduling(level: str = "warp", position: str = "kernel") -> Program:
    fields = (Field("start", "u64"), Field("elapsed", "u32"), Field("cuid", "u32"))
    elapsed = Binary("-", Helper("clock"), Read("start"))
    end = (Assign("elapsed", elapsed), Save("m", (Read("start"), Read("elapsed"), Helper("cuid"))))
    return Program(
        name="sched",
        title="",
        maps=(Map("m", level, "array", 16, 1, fields),),  # type: ignore[arg-type]
        registers=(ProbeRegister("start", "u64"), ProbeRegister("elapsed", "u64")),
        probes=(
            Probe("a", position, level, True, (Assign("start", Helper("clock")),)),  # type: ignore[arg-type]
            Probe("b", "kernel", level, False, end),  # type: ignore[arg-type]
        ),
        source="sched.py",
        form="python",
    )


def woven(kernel: str, level: str, arch: str = "sm_86") -> tuple[str, Woven]:
    text = HEADER.format(arch=arch) + KERNELS[kernel]
    return text, weave(parse(text), "k", scheduling(level))


@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_90"])
@pytest.mark.parametrize("level", ["warp", "thread"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_assembles_and_keeps_the_kernel(kernel: str, level: str, arch: str, tmp_path: Path) -> None:
    text, probed = woven(kernel, level, arch)
    kept = [
        line
        for number, line in enumerate(probed.text.split("\n"), 1)
        if number not in probed.inserted_lines
    ]
    assert "\n".join(kept) == text
    source = tmp_path / "k.ptx"
    source.write_text(probed.text)
    command = [str(find().ptxas), "-arch", arch, str(source), "-o", str(tmp_path / "k.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("kernel", "exits"),
    [("no parameter, exit", 1), ("predicated exit", 3), ("falls through", 1)],
)
def test_every_exit_saves(kernel: str, exits: int) -> None:
    probed = woven(kernel, "warp")[1]
    assert sum(site.probe == "b" for site in probed.sites) == exits
    assert probed.text.count("st.global.v4.b32") == exits


def test_the_clock_is_read_first() -> None:
    lines = woven("falls through", "warp")[1].text.splitlines()
    executed = [line for line in lines[lines.index("{") + 1 :] if not line.startswith("\t.reg")]
    assert "%clock64" in executed[0]


def test_warps_per_block_is_a_ceiling() -> None:
    layout = lay_out(woven("falls through", "warp")[1], (3, 1, 1), (17, 3, 1))
    assert (layout.warps_per_block, layout.warps) == (2, 6)
    assert layout.buffers == (96, 0, 24)


def test_sizes_of_a_huge_grid_do_not_wrap() -> None:
    layout = lay_out(woven("falls through", "thread")[1], (1 << 31, 65535, 1), (1024, 1, 1))
    assert layout.places[0].slots == (1 << 41) * 65535


def test_a_name_that_only_begins_alike_is_no_kernel() -> None:
    module = parse(HEADER.format(arch="sm_86") + ".visible .entry kernel_2()\n{\n\tret;\n}\n")
    with pytest.raises(UserError, match="no kernel named kernel"):
        weave(module, "kernel", scheduling())


def test_a_position_that_cannot_be_woven_is_refused() -> None:
    module = parse(HEADER.format(arch="sm_86") + KERNELS["falls through"])
    with pytest.raises(UserError, match=r"position ld\.global"):
        weave(module, "k", scheduling(position="ld.global"))
