"""Occupancy against the calculator that CUDA ships as a C header."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path

from gpuwatch.device.sim import profiles
from gpuwatch.device.sim.occupancy import resident_blocks
from gpuwatch.errors import UserError
from gpuwatch.toolchain import find

PROGRAM = r"""
#include <stdio.h>
#include <limits.h>
#include "cuda_occupancy.h"
int main(void) {
  int major, minor, threads, most, sms, registers, block, shared;
  unsigned long per_sm, optin, reserved;
  while (scanf("%d %d %d %d %lu %lu %lu %d %d %d", &major, &minor, &most, &sms, &per_sm, &optin,
               &reserved, &block, &registers, &shared) == 10) {
    cudaOccDeviceProp device = {0};
    cudaOccFuncAttributes function = {0};
    cudaOccDeviceState state = {0};
    cudaOccResult result = {0};
    device.computeMajor = major, device.computeMinor = minor;
    device.maxThreadsPerBlock = 1024, device.maxThreadsPerMultiprocessor = most;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32, device.numSms = sms;
    device.sharedMemPerBlock = 49152, device.sharedMemPerMultiprocessor = per_sm;
    device.sharedMemPerBlockOptin = optin, device.reservedSharedMemPerBlock = reserved;
    state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
    function.maxThreadsPerBlock = INT_MAX, function.numRegs = registers;
    function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    function.maxDynamicSharedSizeBytes = optin, function.numBlockBarriers = 1;
    cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, block, shared);
    printf("%d\n", result.activeBlocksPerMultiprocessor);
  }
  return 0;
}
"""


def calculator(folder: Path) -> Path:
    compiler = shutil.which("gcc")
    assert compiler is not None, "this test builds NVIDIA's calculator with gcc"
    headers = [find().nvcc.resolve().parents[1] / "include", Path("/usr/local/cuda/include")]
    include = next(h for h in headers if (h / "cuda_occupancy.h").exists())
    source = folder / "calculator.c"
    source.write_text(PROGRAM)
    program = folder / "calculator"
    command = [compiler, "-w", f"-I{include}", str(source), "-o", str(program)]
    subprocess.run(command, check=True, timeout=60)
    return program


def ours(profile: profiles.Profile, block: int, registers: int, shared: int) -> int:
    try:
        return resident_blocks(profile, block, registers, shared).blocks
    except UserError:
        return 0


def test_equals_cudas_calculator(tmp_path: Path) -> None:
    program = calculator(tmp_path)
    blocks = [1, 32, 33, 64, 96, 128, 160, 192, 256, 288, 384, 512, 640, 768, 992, 1024]
    registers = [16, 24, 32, 33, 40, 48, 56, 64, 65, 80, 96, 128, 168, 255]
    shared = [0, 1, 1000, 4096, 8192, 12345, 16384, 49152, 65536, 99000]
    cases = [
        (profiles.load(name), *shape)
        for name in profiles.names()
        for shape in itertools.product(blocks, registers, shared)
    ]
    text = "\n".join(
        f"{p.compute_capability[0]} {p.compute_capability[1]} {p.threads_per_sm} {p.sm_count} "
        f"{p.shared_per_sm} {p.shared_per_block_max} {p.shared_reserved} {b} {r} {s}"
        for p, b, r, s in cases
    )
    done = subprocess.run(
        [str(program)], input=text, capture_output=True, text=True, check=True, timeout=60
    )
    expected = [int(line) for line in done.stdout.split()]
    wrong = [
        (p.name, b, r, s, e, o)
        for (p, b, r, s), e in zip(cases, expected, strict=True)
        if (o := ours(p, b, r, s)) != e
    ]
    assert not wrong
