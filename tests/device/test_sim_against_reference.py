"""The simulated device against the reference interpreter, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_programs import (
    COMPUTING,
    THREADS,
    Step,
    input_rows,
    programs,
    rows,
    text_of,
)
from random_programs_memory import MEMORY_FORMS, WARP_FORMS
from reference_machine import execute
from sim_support import ptx_of, run

from gpuwatch.ptx import parse

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
NO_SHRINKING = (Phase.explicit, Phase.generate)


def compare(text: str, seed: int) -> None:
    """Runs a program of `random_programs` on both and compares all it wrote."""
    inputs = input_rows(seed)
    random = np.random.default_rng(seed + 1)
    arrays = [
        inputs,
        np.zeros_like(inputs),
        random.integers(0, 256, 64 * THREADS, np.uint8),
        random.integers(0, 256, 64, np.uint8),
    ]
    found = run(text, "random", (1, 1, 1), (THREADS, 1, 1), arrays).buffers
    wanted = execute(text, 1, THREADS, [a.tobytes() for a in arrays], 64 * THREADS)
    outputs = np.frombuffer(wanted[1], np.uint64).reshape(inputs.shape)
    for row, (letter, k) in enumerate(rows()):
        ours, theirs = found[1][row], outputs[row]
        wrong = np.flatnonzero(ours != theirs)
        assert wrong.size == 0, (
            f"%{letter}{k} of threads {wrong.tolist()}: {ours[wrong[0]]:#x} on the simulated "
            f"device, {theirs[wrong[0]]:#x} by the reference\n{text}"
        )
    for name, index in (("own memory", 2), ("common memory", 3)):
        assert found[index].tobytes() == wanted[index], f"{name} differs\n{text}"


def chunks(forms: list[str], size: int) -> list[list[str]]:
    return [forms[k : k + size] for k in range(0, len(forms), size)]


@pytest.mark.parametrize(
    "forms",
    [*chunks(COMPUTING, 160), *chunks(MEMORY_FORMS, 30), *chunks(WARP_FORMS, 20)],
    ids=lambda f: f[0].split()[0],
)
def test_every_form(forms: list[str]) -> None:
    """Each form at least once, on 64 threads' patterns."""
    random = np.random.default_rng(len(forms[0]))
    picks = random.integers(0, 1 << 16, (len(forms), 8))
    steps = [Step(f, tuple(map(int, p)), 11) for f, p in zip(forms, picks, strict=True)]
    compare(text_of(steps), len(forms))


@settings(max_examples=12, deadline=None, suppress_health_check=SLOW, phases=NO_SHRINKING)
@given(programs, st.integers(0, 1 << 20))
def test_random_programs(steps: list[Step], seed: int) -> None:
    """Straight and divergent code, loops, barriers, warp instructions and atomics."""
    compare(text_of(steps), seed)


KERNELS = r"""
extern "C" __global__ void block_sum(const float* in, float* out) {
  __shared__ float part[2];
  float x = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int k = 16; k; k /= 2) x += __shfl_down_sync(~0u, x, k);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = part[0] + part[1];
}
extern "C" __global__ void escape(const float* in, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, n = 0;
  float a = in[i] * 1.5f, b = in[i ^ 1], x = 0, y = 0;
  while (x * x + y * y < 4.0f && n < 40) {
    float t = x * x - y * y + a;
    y = 2 * x * y + b; x = t; n++;
  }
  out[i] = n;
}
extern "C" __global__ void power(const unsigned long long* in, unsigned long long* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long base = in[i] % 1000003, e = i + 1, r = 1;
  for (; e; e >>= 1) { if (e & 1) r = r * base % 1000003; base = base * base % 1000003; }
  out[i] = r;
}
extern "C" __global__ void scan(const int* in, int* out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 64 + t];
  for (int k = 1; k < 64; k *= 2) {
    __syncthreads();
    int v = t >= k ? s[t - k] : 0;
    __syncthreads();
    s[t] += v;
  }
  out[blockIdx.x * 64 + t] = s[t];
}
extern "C" __global__ void histogram(const unsigned char* in, unsigned* out) {
  __shared__ unsigned bins[16];
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int k = 0; k < 4; k++) atomicAdd(&bins[in[blockIdx.x * 256 + k * 64 + threadIdx.x] >> 4], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
extern "C" __global__ void roots(const double* in, double* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  double x = in[i], a = fabs(x) + 0.1;
  out[i] = sqrt(a) / (a + 3) + fma(x, a, floor(x * 8));
}
"""
_DATA = {
    "block_sum": (np.float32, 4),
    "escape": (np.float32, 4),
    "power": (np.uint64, 8),
    "scan": (np.int32, 4),
    "histogram": (np.uint8, 4),
    "roots": (np.float64, 8),
}


@pytest.mark.parametrize("kernel", _DATA)
def test_compiled_kernels(kernel: str, tmp_path: Path) -> None:
    """Kernels as nvcc translates them, in three blocks of two warps."""
    text = only(ptx_of(tmp_path, KERNELS), kernel)
    kind, result_bytes = _DATA[kernel]
    random = np.random.default_rng(7)
    values = random.normal(size=768) if np.issubdtype(kind, np.floating) else None
    given = random.integers(0, 100, 768).astype(kind) if values is None else values.astype(kind)
    arrays = [given, np.zeros(192 * result_bytes, np.uint8)]
    found = run(text, kernel, (3, 1, 1), (THREADS, 1, 1), arrays).buffers
    wanted = execute(text, 3, THREADS, [a.tobytes() for a in arrays])
    assert any(wanted[1])
    assert found[1].tobytes() == wanted[1]


def only(text: str, kernel: str) -> str:
    """The PTX text with all entries but one left out."""
    module = parse(text)
    others = [f for f in module.entries() if f.name != kernel]
    for function in sorted(others, key=lambda f: f.start, reverse=True):
        text = text[: function.start] + text[function.end :]
    return text
