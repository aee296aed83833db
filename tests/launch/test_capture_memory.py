"""Pointers inside memory, managed and pinned memory, module variables; run on the simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from capturing import captured, simulate

ROWS = """
#include <cuda_runtime.h>
struct Node { int value; Node *next; };
__device__ float *scale;
__device__ int counts[4] = {10, 20, 30, 40};
__managed__ int bias = 5;
__global__ void rows(float **row, const Node *node, int *count, float *unused_end) {
  float sum = *scale + bias;
  for (; node; node = node->next) sum += node->value;
  row[blockIdx.x][threadIdx.x] = sum + count[1];
}
int main() {
  float *table[3], **row, *factor, *never, host = 0.5f;
  Node *nodes;
  void *address;
  for (auto &one : table) cudaMalloc(&one, 128);
  cudaMalloc(&never, 4096);
  cudaMalloc(&row, sizeof table);
  cudaMemcpy(row, table, sizeof table, cudaMemcpyHostToDevice);
  cudaMallocManaged(&nodes, 3 * sizeof(Node));
  for (int i = 0; i < 3; ++i) nodes[i] = Node{i + 1, i < 2 ? &nodes[i + 1] : nullptr};
  cudaMalloc(&factor, 4);
  cudaMemcpy(factor, &host, 4, cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(scale, &factor, sizeof factor);
  int changed = 21;
  cudaMemcpyToSymbol(counts, &changed, 4, 4);
  cudaGetSymbolAddress(&address, counts);
  bias = 7;
  rows<<<3, 32>>>(row, nodes, (int *)address, table[0] + 32);
  return cudaGetLastError();
}
"""


def written(folder: Path, program: str) -> Path:
    source = folder / "program.cu"
    source.write_text(program)
    return source


def test_pointers_in_memory_and_variables_lead_to_the_same_places(tmp_path: Path) -> None:
    found, ptx = captured(written(tmp_path, ROWS))
    (launch,) = found.launches
    assert found.status == 0
    assert [buffer.nbytes for buffer in launch.buffers] == [128, 128, 128, 24, 48, 4]
    assert [place.addend for place in launch.relocations] == [0, 0, 128]
    assert [place.variable for place in launch.symbol_relocations] == ["counts"]
    assert launch.globals["counts"] == np.array([10, 21, 30, 40], np.int32).tobytes()
    outputs = simulate(ptx, launch)
    expected = np.full(32, 0.5 + 7 + 6 + 21, np.float32)
    for row in outputs[:3]:
        assert np.array_equal(row.view(np.float32), expected)


def test_arguments_of_every_size_reach_the_kernel(tmp_path: Path) -> None:
    found, ptx = captured(
        written(
            tmp_path,
            """
#include <cuda_runtime.h>
struct Inner { char tag; double value; };
struct Outer { short small[3]; Inner inner; float *out; };
__global__ void echo(signed char c, unsigned short s, bool b, Outer o, float4 v, long long l) {
  float values[] = {(float)c, (float)s, (float)b, (float)o.small[2], (float)o.inner.tag,
                    (float)o.inner.value, v.x, v.w, (float)l};
  for (int i = 0; i < 9; ++i) o.out[i] = values[i];
}
int main() {
  Outer o = {{1, 2, -3}, {'x', 2.5}, nullptr};
  cudaMalloc((void **)&o.out, 64);
  echo<<<1, 1>>>(-7, 65535, true, o, make_float4(1.5f, 2, 3, 4), -(1LL << 40));
  return cudaGetLastError();
}
""",
        )
    )
    (output,) = simulate(ptx, found.launches[0])
    expected = [-7, 65535, 1, -3, ord("x"), 2.5, 1.5, 4, -float(1 << 40)]
    assert output.view(np.float32)[:9].tolist() == expected


def test_plain_data_is_no_address(tmp_path: Path) -> None:
    found, _ = captured(
        written(
            tmp_path,
            """
#include <cuda_runtime.h>
#include <cstring>
__global__ void touch(char *p) { p[threadIdx.x] = 0; }
int main() {
  const int n = 1 << 20;
  char *data;
  cudaMallocManaged((void **)&data, 5L * n * 8);
  for (long i = 0; i < n; ++i) {
    int pair[2] = {(int)(2 * i), (int)(2 * i + 1)}, swapped[2] = {(int)-i, (int)(i & 0x7fff)};
    double real = i * 1e-3;
    float floats[2] = {i * 0.5f, -i * 0.25f};
    long index = i << 20;
    memcpy(data + i * 8, pair, 8);
    memcpy(data + (n + i) * 8, swapped, 8);
    memcpy(data + (2L * n + i) * 8, &real, 8);
    memcpy(data + (3L * n + i) * 8, floats, 8);
    memcpy(data + (4L * n + i) * 8, &index, 8);
  }
  touch<<<1, 32>>>(data);
  return 0;
}
""",
        )
    )
    (launch,) = found.launches
    assert launch.buffer_relocations == {}


def test_memory_of_every_kind_is_host_visible_where_cuda_says_so(tmp_path: Path) -> None:
    found, _ = captured(
        written(
            tmp_path,
            """
#include <cuda_runtime.h>
#include <cstdlib>
#include <cstring>
__global__ void all(char *a, char *b, char *c, char *d, char *e, char *f) {}
int main() {
  char *pinned, *mapped, *on_device, *registered = (char *)malloc(64), *pitched, host[64];
  size_t pitch;
  cudaStream_t stream;
  cudaPitchedPtr box;
  cudaPointerAttributes attributes;
  cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1);
  cudaMallocHost((void **)&pinned, 64);
  cudaHostAlloc((void **)&mapped, 64, cudaHostAllocMapped);
  cudaHostGetDevicePointer((void **)&on_device, mapped, 0);
  cudaHostRegister(registered, 64, 0);
  cudaMallocPitch((void **)&pitched, &pitch, 3, 2);
  cudaMalloc3D(&box, make_cudaExtent(2, 2, 2));
  memset(pinned, 1, 64), memset(mapped, 2, 64), memset(registered, 3, 64), memset(host, 4, 64);
  cudaMemset2D(pitched, pitch, 5, 3, 2);
  cudaMemcpy2DAsync(pitched + 1, pitch, host, 8, 2, 2, cudaMemcpyHostToDevice, stream);
  cudaMemset3D(box, 6, make_cudaExtent(2, 2, 2));
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(host, 2, 2, 2), copy.dstPtr = box;
  copy.dstPos = make_cudaPos(1, 0, 1), copy.extent = make_cudaExtent(1, 1, 1);
  cudaMemcpy3D(&copy);
  char *async;
  cudaMallocAsync((void **)&async, 16, stream);
  cudaMemsetAsync(async, 7, 16, stream);
  cudaPointerGetAttributes(&attributes, mapped + 3);
  if (attributes.type != cudaMemoryTypeHost) return 9;
  cudaPointerGetAttributes(&attributes, host);
  if (attributes.type != cudaMemoryTypeUnregistered) return 10;
  all<<<1, 1>>>(pinned, on_device, registered, pitched, (char *)box.ptr, async);
  cudaFreeAsync(async, stream), cudaFreeHost(pinned), cudaHostUnregister(registered);
  if (cudaFree(host) != cudaErrorInvalidValue) return 11;
  return cudaStreamDestroy(stream);
}
""",
        )
    )
    (launch,) = found.launches
    assert found.status == 0
    places = [place.buffer for place in launch.relocations]
    pinned, mapped, registered, pitched, box, made = (launch.buffers[index] for index in places)
    assert (pinned == 1).all()
    assert (mapped == 2).all()
    assert (registered == 3).all()
    assert pitched.reshape(2, 512)[:, :4].tolist() == [[5, 4, 4, 0]] * 2
    assert box.reshape(2, 2, 512)[:, :, :3].tolist() == [
        [[6, 6, 0], [6, 6, 0]],
        [[6, 4, 0], [6, 6, 0]],
    ]
    assert (made == 7).all()
