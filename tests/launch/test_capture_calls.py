"""Runtime calls of real programs: streams, graphs, launch variants, launches that fail."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from capturing import captured

from gpuwatch.errors import UserError
from gpuwatch.launch.build import RUNTIME, runtime_text
from gpuwatch.toolchain import find


def written(folder: Path, program: str) -> Path:
    source = folder / "program.cu"
    source.write_text(program)
    return source


STREAMS = """
#include <cuda_runtime.h>
#include <cstring>
extern "C" cudaError_t cudaProfilerStart();
__global__ void add(int *p, int by) { p[threadIdx.x] += by; }
__constant__ int table[4];
static void count(void *data) { ++*(int *)data; }
static void CUDART_CB done(cudaStream_t, cudaError_t, void *data) { *(int *)data += 10; }
#define OK(call) do { if ((call) != cudaSuccess) return __LINE__; } while (0)
int main() {
  int *p, host[32], calls = 0, least, greatest, flags_value;
  unsigned flags;
  cudaStream_t a, b;
  cudaEvent_t begun, forked, joined;
  cudaProfilerStart();
  OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  OK(cudaStreamCreateWithPriority(&a, cudaStreamNonBlocking, greatest));
  OK(cudaStreamCreate(&b));
  OK(cudaStreamGetFlags(a, &flags));
  OK(cudaStreamGetPriority(a, &flags_value));
  if (flags != cudaStreamNonBlocking || flags_value != greatest) return 1;
  OK(cudaEventCreate(&begun));
  OK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
  OK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
  OK(cudaMallocManaged((void **)&p, sizeof host));
  for (int &one : host) one = 3;
  OK(cudaEventRecord(begun, a));
  OK(cudaStreamWaitEvent(b, begun, 0));
  OK(cudaMemcpyAsync(p, host, sizeof host, cudaMemcpyHostToDevice, a));
  OK(cudaLaunchHostFunc(a, count, &calls));
  OK(cudaStreamAddCallback(a, done, &calls, 0));
  OK(cudaStreamSynchronize(a));
  if (calls != 11 || p[31] != 3) return 2;
  OK(cudaMemPrefetchAsync(p, sizeof host, cudaMemLocation{cudaMemLocationTypeDevice, 0}, 0, a));

  cudaGraph_t graph, made;
  cudaGraphExec_t runnable;
  cudaStreamCaptureStatus status;
  OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  OK(cudaMemsetAsync(p, 0, sizeof host, a));
  OK(cudaEventRecord(forked, a));
  OK(cudaStreamWaitEvent(b, forked, 0));
  add<<<1, 32, 0, a>>>(p, 1);
  add<<<2, 32, 0, b>>>(p, 2);
  OK(cudaLaunchHostFunc(b, count, &calls));
  OK(cudaEventRecord(joined, b));
  OK(cudaStreamWaitEvent(a, joined, 0));
  OK(cudaStreamIsCapturing(b, &status));
  if (status != cudaStreamCaptureStatusActive || p[0] != 3 || calls != 11) return 3;
  OK(cudaStreamEndCapture(a, &graph));
  OK(cudaGraphInstantiate(&runnable, graph, 0));
  OK(cudaGraphLaunch(runnable, a));
  if (p[0] != 0 || calls != 12) return 4;
  OK(cudaGraphLaunch(runnable, a));
  OK(cudaGraphExecDestroy(runnable));
  OK(cudaGraphDestroy(graph));

  OK(cudaGraphCreate(&made, 0));
  cudaGraphNode_t copy, launch;
  int by = 7;
  void *arguments[] = {&p, &by};
  cudaKernelNodeParams node = {};
  node.func = (void *)add, node.gridDim = 4, node.blockDim = 32, node.kernelParams = arguments;
  OK(cudaGraphAddMemcpyNode1D(&copy, made, nullptr, 0, p, host, sizeof host, cudaMemcpyDefault));
  OK(cudaGraphAddKernelNode(&launch, made, &copy, 1, &node));
  by = 9;
  OK(cudaGraphInstantiate(&runnable, made, 0));
  node.gridDim = 5;
  OK(cudaGraphExecKernelNodeSetParams(runnable, launch, &node));
  OK(cudaGraphLaunch(runnable, 0));

  float ms = 0;
  OK(cudaEventElapsedTime(&ms, begun, begun));
  if (ms <= 0 || cudaEventQuery(begun) != cudaSuccess) return 5;
  int symbols[4] = {1, 2, 3, 4}, back[4];
  OK(cudaMemcpyToSymbolAsync(table, symbols, sizeof symbols, 0, cudaMemcpyHostToDevice, a));
  OK(cudaMemcpyFromSymbol(back, table, sizeof back));
  if (memcmp(symbols, back, sizeof back) != 0) return 6;
  return cudaDeviceReset();
}
"""


@pytest.mark.parametrize("flags", [(), ("-default-stream=per-thread",)], ids=["legacy", "thread"])
def test_streams_graphs_and_callbacks(tmp_path: Path, flags: tuple[str, ...]) -> None:
    found, _ = captured(written(tmp_path, STREAMS), flags=flags, launch=4)
    assert found.status == 0
    assert [one.grid[0] for one in found.listed] == [1, 2, 1, 2, 5]
    (launch,) = found.launches
    assert (launch.index, launch.grid) == (4, (5, 1, 1))
    assert struct.unpack_from("<i", launch.parameters, 8) == (9,)
    assert launch.buffers[0].view(np.int32).tolist() == [3] * 32


LAUNCHES = """
#include <cuda_runtime.h>
struct Packed { char tag; double2 pair; short small[3]; };
__global__ void all(int n, Packed p, float4 v, signed char c, unsigned short s, bool b) {}
__global__ void grid(int *p) { *p = 1; }
__global__ void __cluster_dims__(2, 1, 1) fixed() {}
__global__ void __launch_bounds__(128) small() {}
__global__ void dynamic() { extern __shared__ int s[]; s[threadIdx.x] = 0; }
#define IS(call, expected) do { if ((call) != (expected)) return __LINE__; } while (0)
int main() {
  int *p, blocks;
  cudaMalloc(&p, 4);
  cudaFuncAttributes attributes;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, grid, 64, 0);
  void *arguments[] = {&p};
  IS(cudaLaunchCooperativeKernel((void *)grid, 4, 64, arguments, 0, 0), cudaSuccess);
  IS(cudaLaunchCooperativeKernel((void *)grid, 132 * blocks + 1, 64, arguments, 0, 0),
     cudaErrorCooperativeLaunchTooLarge);
  cudaLaunchAttribute cluster[1];
  cluster[0].id = cudaLaunchAttributeClusterDimension;
  cluster[0].val.clusterDim.x = 4, cluster[0].val.clusterDim.y = cluster[0].val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 8, config.blockDim = 32, config.attrs = cluster, config.numAttrs = 1;
  Packed packed = {'t', {1.5, -2.5}, {1, -2, 3}};
  IS(cudaLaunchKernelEx(&config, all, 5, packed, make_float4(1, 2, 3, 4), (signed char)-7,
                        (unsigned short)65535, true), cudaSuccess);
  config.gridDim = 6;
  IS(cudaLaunchKernelEx(&config, all, 5, packed, make_float4(1, 2, 3, 4), (signed char)-7,
                        (unsigned short)65535, true), cudaErrorInvalidConfiguration);
  fixed<<<4, 32>>>();
  small<<<1, 129>>>();
  IS(cudaGetLastError(), cudaErrorLaunchOutOfResources);
  dynamic<<<1, 32, 60000>>>();
  IS(cudaPeekAtLastError(), cudaErrorInvalidValue);
  IS(cudaGetLastError(), cudaErrorInvalidValue);
  IS(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000),
     cudaSuccess);
  dynamic<<<1, 32, 60000>>>();
  IS(cudaGetLastError(), cudaSuccess);
  dynamic<<<0, 32>>>();
  IS(cudaFuncGetAttributes(&attributes, small), cudaSuccess);
  IS(attributes.maxThreadsPerBlock, 128);
  return 0;
}
"""


def test_launch_variants_keep_what_was_asked_and_why_it_failed(tmp_path: Path) -> None:
    found, _ = captured(written(tmp_path, LAUNCHES), device="sim:h200")
    assert found.status == 0, found.status
    assert found.total == 9
    errors = {one.index: one.error for one in found.listed if one.error}
    assert {index: error.partition(",")[0] for index, error in errors.items()} == {
        1: "cudaErrorCooperativeLaunchTooLarge",
        3: "cudaErrorInvalidConfiguration",
        5: "cudaErrorLaunchOutOfResources",
        6: "cudaErrorInvalidValue",
        8: "cudaErrorInvalidConfiguration",
    }
    assert "60000 bytes of dynamic shared memory > 49152" in errors[6]
    by_name = {launch.kernel: launch for launch in found.launches}
    assert [by_name[name].cooperative for name in sorted(by_name)] == [
        "grid" in name for name in sorted(by_name)
    ]
    clusters = {name: launch.cluster for name, launch in by_name.items() if launch.cluster}
    assert sorted(clusters.values()) == [(2, 1, 1), (4, 1, 1)]
    assert found.counts[by_name["_Z7dynamicv"].kernel] == 1
    assert found.failure("_Z5smallv") == found.listed[5]
    block = next(launch for name, launch in by_name.items() if "Packed" in name).parameters
    assert struct.unpack_from("<i", block) == (5,)
    assert struct.unpack_from("<c15x2d3h", block, 16) == (b"t", 1.5, -2.5, 1, -2, 3)
    assert struct.unpack_from("<4fbxHB", block, 64) == (1, 2, 3, 4, -7, 65535, 1)


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (
            1,
            "launch 1 of kernel k failed: cudaErrorInvalidConfiguration, block 2048 threads > 1024",
        ),
        (7, "made no launch 7: it made 3"),
    ],
)
def test_a_launch_that_cannot_be_had_is_told(tmp_path: Path, launch: int, words: str) -> None:
    source = written(
        tmp_path,
        "#include <cstdio>\n"
        "__global__ void k() {}\n"
        'int main() { k<<<1, 32>>>(); k<<<1, 2048>>>(); k<<<3, 32>>>(); puts("FAILED"); }\n',
    )
    with pytest.raises(UserError) as caught:
        captured(source, launch=launch)
    assert words in caught.value.message
    assert caught.value.detail == (
        "the program ran without a GPU, so its own checks fail; it printed:\nFAILED\n"
    )
    assert caught.value.hint


def test_many_launches_are_counted_and_listed_up_to_a_limit(tmp_path: Path) -> None:
    source = written(
        tmp_path,
        "__global__ void k(int n) {}\n"
        "int main() { for (int i = 0; i < 70000; ++i) k<<<1, 32>>>(i); }\n",
    )
    found, _ = captured(source, launch=69_999)
    assert (found.total, found.counts["_Z1ki"]) == (70_000, 70_000)
    assert len(found.listed) == 65_536 + 1
    assert struct.unpack("<i", found.launches[0].parameters) == (69_999,)


def test_textures_are_refused_by_name(tmp_path: Path) -> None:
    source = written(
        tmp_path,
        """
#include <cuda_runtime.h>
__global__ void k(cudaTextureObject_t t, float *p) { *p = tex1Dfetch<float>(t, 0); }
int main() {
  cudaTextureObject_t texture;
  cudaResourceDesc resource = {};
  if (cudaCreateTextureObject(&texture, &resource, nullptr, nullptr) != cudaSuccess) return 1;
  k<<<1, 1>>>(texture, nullptr);
}
""",
    )
    with pytest.raises(UserError, match="does not support: cudaCreateTextureObject"):
        captured(source)


def test_the_runtime_builds_without_a_warning_in_small_files(tmp_path: Path) -> None:
    strict = "-Xcompiler=-Wall,-Wextra,-Werror"
    command = [find().nvcc, "-c", "-O2", strict, *sorted(RUNTIME.glob("*.c"))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(text.count(b"\n") < 400 for text in runtime_text())
