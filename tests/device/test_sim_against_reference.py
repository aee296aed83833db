"""The simulated device against the reference interpreter, bit for bit.

With the environment variable GPUWATCH_ALL_FORMS each form runs by itself too (some ten minutes).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_programs import THREADS, Step, programs
from random_programs_cases import Case, case_of, case_of_forms, differences, groups
from reference_machine import execute
from sim_support import ptx_of, run

from gpuwatch.device.sim import compile as translation
from gpuwatch.ptx import parse

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
NO_SHRINKING = (Phase.explicit, Phase.generate)


def check(case: Case) -> None:
    """Runs a case on the simulated device and compares all it wrote with the reference."""
    arrays = [np.frombuffer(content, np.uint8) for content in case.inputs]
    found = run(case.text, "random", (1, 1, 1), (THREADS, 1, 1), arrays).buffers
    wrong = differences(case, [buffer.tobytes() for buffer in found])
    assert not wrong, "\n".join([*wrong, case.text])


@pytest.mark.parametrize("forms", groups(), ids=lambda forms: forms[0].split()[0])
def test_every_form(forms: list[str]) -> None:
    """Each form at least once, on 64 threads' patterns."""
    check(case_of_forms(forms, len(forms)))


@pytest.mark.parametrize("group", [0, 2, -1])
def test_a_long_program_is_translated_as_it_stands(
    group: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GPUWATCH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(translation, "_LONG", 0)
    check(case_of_forms(groups()[group], 1))


@settings(max_examples=10, deadline=None, suppress_health_check=SLOW, phases=NO_SHRINKING)
@given(programs, st.integers(0, 1 << 20))
def test_random_programs(steps: list[Step], seed: int) -> None:
    """Straight and divergent code, loops, barriers, warp instructions and atomics."""
    check(case_of(steps, seed))


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
