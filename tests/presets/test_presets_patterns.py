"""Traffic of access patterns, against the addresses that follow from their index expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuwatch.analysis.metrics import metrics_of
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session

THREADS, BLOCK, N = 300, 96, 290
BLOCKS = -(-THREADS // BLOCK)


@dataclass(frozen=True)
class Pattern:
    """`index` and `condition` are expressions in `i`, the thread, and `k`, the round, that mean
    the same in C++ and Python; `width` is the bytes of an element."""

    index: str
    condition: str = "i < n"
    width: int = 4
    rounds: int = 1


PATTERNS = {
    "coalesced": Pattern("i"),
    "misaligned": Pattern("i + 3"),
    "backwards": Pattern("n - 1 - i"),
    "by_two": Pattern("i * 2"),
    "by_three": Pattern("i * 3"),
    "by_nine": Pattern("i * 9"),
    "broadcast": Pattern("k + 5", rounds=3),
    "permuted": Pattern("i ^ 13"),
    "scattered": Pattern("i * 37 % 251"),
    "bytes_alone": Pattern("i + 7", width=1),
    "bytes_apart": Pattern("i * 5", width=1),
    "pairs": Pattern("i + 1", width=8),
    "quads": Pattern("i", width=16),
    "each_third": Pattern("i", condition="i % 3 == 1"),
    "holes_backwards": Pattern("n - i", condition="i < n && (i & 5) != 4"),
    "rounds": Pattern("k * 96 + i", rounds=5),
    "uneven_rounds": Pattern("k * 33 + i", condition="k < i % 4", rounds=5),
}
TYPES = {1: "unsigned char", 4: "float", 8: "float2", 16: "float4"}
FIRST = {1: "", 4: "", 8: ".x + value.y", 16: ".x + value.y + value.z + value.w"}
MAIN = """
#include <cuda_runtime.h>
{kernels}
int main()
{{
    void *in;
    float *out;
    cudaMalloc(&in, 1 << 16);
    cudaMalloc(&out, 4 * {threads});
    cudaMemset(in, 0, 1 << 16);
    {launches}
    return cudaDeviceSynchronize();
}}
"""
KERNEL = """
__global__ void {name}(const {type} *in, float *out, int n)
{{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= {threads}) return;
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < {rounds}; ++k)
        if ({condition}) {{ {type} value = in[{index}]; sum += value{first}; }}
    out[i] = sum;
}}
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    kernels = "".join(
        KERNEL.format(name=name, type=TYPES[one.width], threads=THREADS, rounds=one.rounds,
                      condition=one.condition, index=one.index, first=FIRST[one.width])
        for name, one in PATTERNS.items()
    )  # fmt: skip
    launches = "\n    ".join(
        f"{name}<<<{BLOCKS}, {BLOCK}>>>((const {TYPES[one.width]} *)in, out, {N});"
        for name, one in PATTERNS.items()
    )
    source: Path = tmp_path_factory.mktemp("patterns") / "patterns.cu"
    source.write_text(MAIN.format(kernels=kernels, launches=launches, threads=THREADS))
    opened = Session(Options(str(source), device="sim:h200", probe="gmem_traffic"))
    yield opened
    opened.close()


@pytest.mark.parametrize("name", PATTERNS)
def test_traffic_of(session: Session, name: str) -> None:
    session.select(kernel=name)
    frame = session.frame()
    pattern = PATTERNS[name]
    requests = sectors = asked = 0
    test = pattern.condition.replace("&&", "and")
    for first in range(0, THREADS, 32):
        for k in range(pattern.rounds):
            lanes = range(first, min(first + 32, THREADS))
            there = [i for i in lanes if eval(test, {"i": i, "k": k, "n": N})]
            places = {eval(pattern.index, {"i": i, "k": k, "n": N}) for i in there}
            requests += bool(there)
            sectors += len({place * pattern.width // 32 for place in places})
            asked += len(there) * pattern.width
    metrics = metrics_of(frame.maps)
    assert metrics["global_load_requests"] == requests
    assert metrics["global_load_sectors"] == sectors
    assert metrics["global_load_bytes"] == 32 * sectors
    assert metrics["global_load_bytes_asked"] == asked
    assert metrics["global_store_requests"] == -(-THREADS // 32)
    assert metrics["global_store_bytes_asked"] == 4 * THREADS
    assert frame.outputs_identical
