"""Every instruction that nvcc makes of the headers' device functions is executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.device.sim.codegen import generate
from gpuwatch.device.sim.linking import build_program
from gpuwatch.ptx import parse
from gpuwatch.toolchain import compile_to_ptx, find

SOURCE = Path(__file__).parent / "coverage_kernels.cu"
EVERYWHERE = {"halves", "eighths", "floats", "integers", "warps", "pipeline", "matrices"}


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_90"])
def test_all_that_nvcc_emits(arch: str) -> None:
    module = parse(compile_to_ptx(find(), SOURCE, arch), f"{arch}.ptx")
    symbols = {v.name: 1 << 20 for v in module.variables if v.space in ("global", "const")}
    names = set()
    for entry in module.entries():
        text = generate(module, build_program(module, entry), symbols)
        assert "F0:" in text
        names.add(entry.name)
    later = set() if arch == "sm_75" else {"brains", "more_matrices"}
    assert names == EVERYWHERE | later
