"""Calls of device functions: by name, through pointers, recursive, in divergent code."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sim_support import ptx_of, run

from gpuwatch.errors import UserError

SOURCE = r"""
struct Three { int a, b, c; };
struct Big { double x[5]; };
typedef int (*Unary)(int);
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ int negate(int x) { return -x; }
__device__ Unary table[3] = {twice, square, negate};
__device__ __noinline__ Three turn(Three s) { Three r = {s.c, s.a, s.b}; return r; }
__device__ __noinline__ Big scaled(Big b, double f) {
  for (int k = 0; k < 5; k++) b.x[k] *= f + k;
  return b;
}
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }
__device__ __noinline__ int digits(int n, int *seen) {
  int mine[4] = {n % 10, *seen, n, 7};
  if (n < 10) return mine[n & 3] + n;
  int rest = digits(n / 10, &mine[n % 4]);
  return rest * 3 + mine[0] + mine[1] + mine[2] - mine[3];
}
__device__ __noinline__ void leave(int *out, int k) {
  out[k] = 5;
  if (k % 3 == 0) asm volatile("exit;");
  out[k] = 6;
}
__device__ __noinline__ int meet(int *x, int t) {
  x[t] = t;
  __syncthreads();
  return x[t ^ 33];
}
__device__ __noinline__ int deep(int n) {
  volatile int block[64];
  block[n & 63] = n;
  return deep(n + 1) + block[n & 63];
}
extern "C" {
__global__ void by_name(int *out) {
  int t = threadIdx.x;
  out[t] = t % 2 ? twice(t) : square(t) + twice(3);
}
__global__ void by_pointer(int *out) {
  int t = threadIdx.x;
  out[t] = t % 4 == 3 ? 1000 : table[t % 4](t + 1);
}
__global__ void structs(int *out, double *wide) {
  int t = threadIdx.x;
  Three s = turn(Three{t, 2 * t, 3 * t});
  out[t] = s.a * 10000 + s.b * 100 + s.c;
  Big b;
  for (int k = 0; k < 5; k++) b.x[k] = t + k;
  b = scaled(b, t);
  for (int k = 0; k < 5; k++) wide[t * 5 + k] = b.x[k];
}
__global__ void recursive(int *out) {
  int t = threadIdx.x, zero = 0;
  out[t] = fib(t % 11) + 1000 * even(t);
  if (t % 3) out[t] += 10000 * digits(t * 37, &zero);
}
__global__ void leaving(int *out) { leave(out, threadIdx.x); }
__global__ void meeting(int *out) {
  __shared__ int x[64];
  out[threadIdx.x] = meet(x, threadIdx.x);
}
__global__ void overflowing(int *out) { out[0] = deep(out[0]); }
__global__ void sines(double *x) { x[threadIdx.x] = sin(x[threadIdx.x]); }
__global__ void switched(int *out) {
  int t = threadIdx.x, v = 3;
  switch (t % 9) {
    case 0: v = t * 3; break;
    case 1: v = t ^ 55; break;
    case 2: v = t - 9; break;
    case 3: v = twice(t); break;
    case 4: v = t * t; break;
    case 5: v = t / 3; break;
    case 6: v = -t; break;
    case 7: v = t << 2; break;
  }
  out[t] = v;
}
__global__ void wrong(int *out, long long f) { out[0] = ((Unary)(f + out[0]))(table[0](1)); }
}
"""


@pytest.fixture(scope="module")
def ptx(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("calls")
    return ptx_of(folder, SOURCE)


def integers(ptx: str, kernel: str, threads: int = 64) -> list[int]:
    out = run(ptx, kernel, (1, 1, 1), (threads, 1, 1), [np.zeros(threads, np.int32)]).buffers[0]
    return [int(v) for v in out]


@pytest.mark.parametrize("threads", [64, 45])
def test_calls_by_name_in_divergent_code(ptx: str, threads: int) -> None:
    expected = [2 * t if t % 2 else t * t + 6 for t in range(threads)]
    assert integers(ptx, "by_name", threads) == expected


def test_lanes_call_different_functions_through_a_pointer(ptx: str) -> None:
    functions = [lambda x: 2 * x, lambda x: x * x, lambda x: -x, lambda _: 1000]
    assert integers(ptx, "by_pointer") == [functions[t % 4](t + 1) for t in range(64)]


def test_structs_as_arguments_and_results(ptx: str) -> None:
    given = [np.zeros(40, np.int32), np.zeros((40, 5))]
    out, wide = run(ptx, "structs", (1, 1, 1), (40, 1, 1), given).buffers
    assert out.tolist() == [3 * t * 10000 + t * 100 + 2 * t for t in range(40)]
    assert wide.tolist() == [[(t + k) * (t + k) for k in range(5)] for t in range(40)]


def digits(n: int, seen: int) -> int:
    mine = [n % 10, seen, n, 7]
    if n < 10:
        return mine[n & 3] + n
    rest = digits(n // 10, mine[n % 4])
    return rest * 3 + mine[0] + mine[1] + mine[2] - mine[3]


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def test_recursion_keeps_registers_and_local_memory_of_each_frame(ptx: str) -> None:
    expected = [
        fib(t % 11) + 1000 * (t % 2 == 0) + (10000 * digits(t * 37, 0) if t % 3 else 0)
        for t in range(64)
    ]
    assert integers(ptx, "recursive") == expected


def test_exit_in_a_function_ends_the_thread(ptx: str) -> None:
    assert integers(ptx, "leaving") == [5 if t % 3 == 0 else 6 for t in range(64)]


def test_a_barrier_in_a_function(ptx: str) -> None:
    assert integers(ptx, "meeting") == [t ^ 33 for t in range(64)]


def test_the_stack_is_bounded(ptx: str) -> None:
    with pytest.raises(UserError, match="stack overflow") as caught:
        integers(ptx, "overflowing")
    assert caught.value.status == 1
    assert "thread (0, 0, 0)" in caught.value.detail


def test_double_sine_runs_with_its_slow_path(ptx: str) -> None:
    x = np.array([0.0, 0.5, 3.0, -1e5, 1e22, 7e9, 1e300, -2.0] * 5)
    out = run(ptx, "sines", (1, 1, 1), (40, 1, 1), [x]).buffers[0]
    assert out.tolist() == pytest.approx([math.sin(v) for v in x], abs=1e-15)


def test_switches(ptx: str) -> None:
    def one(t: int) -> int:
        cases = [t * 3, t ^ 55, t - 9, 2 * t, t * t, t // 3, -t, t << 2, 3]
        return cases[t % 9]

    assert integers(ptx, "switched") == [one(t) for t in range(64)]


def test_a_call_to_no_function(ptx: str) -> None:
    with pytest.raises(UserError, match="no function at address 0x1234"):
        run(ptx, "wrong", (1, 1, 1), (32, 1, 1), [np.zeros(1, np.int32), np.int64(0x1234)])


HEAD = ".version 8.0\n.target sm_86\n.address_size 64\n"


def test_functions_with_register_parameters_and_branch_tables() -> None:
    text = HEAD + (
        ".func (.reg .u32 %result) plus (.reg .u32 %a, .reg .u32 %b)\n"
        "{\n\tadd.u32 %result, %a, %b;\n\tret;\n}\n"
        ".visible .entry k(.param .u64 out)\n{\n\t.reg .b64 %rd<5>;\n\t.reg .b32 %r<9>;\n"
        "\t.reg .pred %p<3>;\n\tld.param.u64 %rd1, [out];\n\tmov.u32 %r1, %tid.x;\n"
        "\tmul.wide.u32 %rd2, %r1, 4;\n\tadd.s64 %rd1, %rd1, %rd2;\n\tand.b32 %r2, %r1, 3;\n"
        "\tsetp.eq.u32 %p1, %r2, 1;\n\tmov.u32 %r3, 9;\n"
        "\t@!%p1 call (%r3), plus, (%r1, 100);\n"
        "\tT: .branchtargets A, B, A, C;\n\tbrx.idx %r2, T;\n"
        "A:\tadd.u32 %r3, %r3, 1000;\n\tbra D;\nB:\tadd.u32 %r3, %r3, 2000;\n\tbra D;\n"
        "C:\tadd.u32 %r3, %r3, 3000;\nD:\tst.global.u32 [%rd1], %r3;\n\tret;\n}\n"
    )
    expected = [(9 if t % 4 == 1 else t + 100) + [1000, 2000, 1000, 3000][t % 4] for t in range(64)]
    assert integers(text, "k") == expected


def test_parts_of_scalar_parameters_are_read_and_written() -> None:
    text = HEAD + (
        ".func (.param .b32 result) parts (.param .b32 a, .param .b64 b)\n{\n"
        "\t.reg .b32 %r<9>;\n\t.reg .b16 %rs<3>;\n\tld.param.s8 %r1, [a];\n"
        "\tld.param.u8 %r2, [a+1];\n\tld.param.s16 %rs1, [a+2];\n\tld.param.u32 %r3, [b+4];\n"
        "\tcvt.s32.s16 %r4, %rs1;\n\tadd.s32 %r1, %r1, %r2;\n\tadd.s32 %r1, %r1, %r3;\n"
        "\tadd.s32 %r1, %r1, %r4;\n\tst.param.b32 [result], %r1;\n\tret;\n}\n"
        ".visible .entry k(.param .u64 out)\n{\n\t.reg .b64 %rd<5>;\n\t.reg .b32 %r<9>;\n"
        "\tld.param.u64 %rd1, [out];\n\tmov.u32 %r1, %tid.x;\n\tmul.wide.u32 %rd2, %r1, 4;\n"
        "\tadd.s64 %rd1, %rd1, %rd2;\n\tmul.wide.u32 %rd3, %r1, 7;\n\tshl.b64 %rd3, %rd3, 32;\n"
        "\t{\n\t.param .b32 p;\n\tst.param.b32 [p], -2;\n\tst.param.b8 [p+1], %r1;\n"
        "\tst.param.b16 [p+2], %r1;\n\t.param .b64 q;\n\tst.param.b64 [q], %rd3;\n"
        "\t.param .b32 r;\n\tcall (r), parts, (p, q);\n\tld.param.b32 %r3, [r];\n\t}\n"
        "\tst.global.u32 [%rd1], %r3;\n\tret;\n}\n"
    )
    assert integers(text, "k") == [-2 + t + 7 * t + t for t in range(64)]


def test_unknown_functions_are_listed_before_the_launch() -> None:
    text = HEAD + (
        ".extern .func (.param .b64 r) malloc (.param .b64 size);\n"
        ".visible .entry k()\n{\n\t.reg .b64 %rd<5>;\n"
        "\t{\n\t.param .b64 p;\n\tst.param.b64 [p], 8;\n\t.param .b64 q;\n"
        "\tcall (q), malloc, (p);\n\tld.param.b64 %rd1, [q];\n\t}\n\tret;\n}\n"
    )
    with pytest.raises(UserError) as caught:
        run(text, "k", (1, 1, 1), (32, 1, 1), [])
    assert caught.value.status == 2
    assert "call of malloc" in caught.value.detail
    assert "line 12" in caught.value.detail
