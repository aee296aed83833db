"""Results in module variables: compared with the plain kernel's, and the same at every launch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpuwatch.device import open_device
from gpuwatch.engine.attach import load_plain, load_probed
from gpuwatch.engine.options import Options
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.probe import load

SOURCE = """\
__device__ int total;
__device__ int table[64];
__device__ int *places[2] = {&total, table + 1};
__global__ void count()
{
    atomicAdd(places[0], 1);
    atomicAdd(&places[1][int(threadIdx.x) - 1], blockIdx.x + 1);
    if (threadIdx.x == 0) places[1] = table + 1;
}
int main() { count<<<3, 64>>>(); return cudaDeviceSynchronize(); }
"""


@pytest.mark.parametrize("device", ["sim:a10", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_variables_start_anew_and_end_alike(tmp_path: Path, device: str) -> None:
    source = tmp_path / "count.cu"
    source.write_text(SOURCE)
    target, _ = open_device(device)
    program = WatchedProgram(Options(str(source), device=device), target, lambda _text: None)
    plain = load_plain(program, target, program.find_kernel(""))
    probed = load_probed(program, target, plain, load("block_sched"))
    try:
        for _ in range(3):
            probed.runner.loaded.run()
        again = probed.runner.loaded.read_variables()
    finally:
        probed.close()
        plain.runner.loaded.close()
        target.close()
    assert probed.outputs_identical is True and plain.results is not None
    assert plain.results.variables["total"].view(np.int32).tolist() == [192]
    assert plain.results.variables["table"].view(np.int32).tolist() == [6] * 64
    assert again["total"].view(np.int32).tolist() == [192]
