"""Cases in which an earlier probing tool loses or spoils records; here they are right.

The numbers are those of the list that these tests follow.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from peer_support import (
    COUNT,
    HEADER,
    LOADS,
    OPENING,
    STORE,
    WARP_RECORD,
    kernel,
    loop,
    program,
    watch,
)

from gpuwatch.device import open_device
from gpuwatch.engine.attach import load_plain, load_probed
from gpuwatch.engine.options import Options
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.errors import UserError
from gpuwatch.instrument import lay_out, weave
from gpuwatch.ptx import parse

UNUSUAL = {
    "ld.global": "\tld.volatile.global.u32 %r5, [%a2];\n",
    "atom.global": "\tatom.global.add.u32 %r5, [%a2], 1;\n",
    "atom": "\tatom.relaxed.gpu.global.add.u32 %r5, [%a2], 1;\n",
    "ld.global.nc": "\tld.global.nc.v2.u32 {%r5, %r6}, [%a1];\n",
    "st.global": "\tst.volatile.global.u32 [%a2], %r4;\n",
}


@pytest.mark.parametrize("position", UNUSUAL)
def test_peer_09_every_form_of_an_access_is_visible(position: str) -> None:
    ending = "\tadd.u32 %r5, %r5, 1;\n\tret;\n"
    seen = watch(kernel(UNUSUAL[position] + ending), COUNT.format(position=position, initial=0))
    assert seen.unchanged
    assert set(seen.column("counted", "times")) == {1}


def test_peer_09_bulk_copies_are_visible() -> None:
    ptx = HEADER.replace("sm_86", "sm_90") + (
        ".visible .entry k(.param .u64 out)\n{\n" + OPENING + "\t.reg .b32 %s<3>;\n"
        "\t.shared .align 128 .b8 box[1024];\n\t.shared .align 8 .b64 bar;\n"
        "\tmov.u32 %s1, box; mov.u32 %s2, bar;\n"
        "\tcp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes\n"
        "\t\t[%s1], [%a1],\n\t\t1024, [%s2];\n\tret;\n}\n"
    )
    woven = weave(parse(ptx), "k", program(COUNT.format(position="cp.async.bulk", initial=0)))
    sites = [site.opcode for site in woven.sites if site.probe == "at_access"]
    assert len(sites) == 1
    assert sites[0].startswith("cp.async.bulk")


def test_peer_09_device_function_bodies_are_visible() -> None:
    ptx = HEADER + (
        ".func (.param .b32 result) fetch(.param .b64 from)\n{\n\t.reg .b64 %a<2>;\n"
        "\t.reg .b32 %r<2>;\n\tld.param.u64 %a1, [from];\n\tld.global.u32 %r1, [%a1];\n"
        "\tst.param.b32 [result], %r1;\n\tret;\n}\n"
        ".visible .entry k(.param .u64 out)\n{\n" + OPENING + "\t{\n\t.param .b64 p0;\n"
        "\t.param .b32 r0;\n\tst.param.b64 [p0], %a2;\n"
        "\tcall.uni (r0),\n\tfetch,\n\t(\n\tp0\n\t);\n"
        "\tld.param.b32 %r5, [r0];\n\t}\n\tadd.u32 %r5, %r5, 1;\n"
        "\tst.global.u32 [%a2], %r5;\n\tret;\n}\n"
    )
    probe = """
@Map(level="thread", size=8, cap=2)
class loads:
    address: gl.u64

@probe(pos="ld.global", level="thread")
def at_load():
    loads.save(gl.addr)
"""
    seen = watch(ptx, probe)
    assert seen.unchanged
    assert len(seen.column("loads", "address")) == 128
    assert [site.function for site in seen.woven.sites] == ["fetch"]


def test_peer_10_records_beyond_the_capacity_are_counted_and_written_nowhere() -> None:
    probe = LOADS.format(cap=4, position="ld.global", before=True).replace(
        "loads.save(gl.addr)", "loads.save(gl.thread)"
    )
    body = "\tand.b32 %r5, %r4, 7; add.u32 %r5, %r5, 1;\n"
    body += loop("\tld.global.u32 %r6, [%a2];\n", "%r5") + STORE + "\tret;\n"
    seen = watch(kernel(body), probe)
    loads = seen.maps["loads"]
    kept = [min(4, thread % 8 + 1) for thread in range(128)]
    assert seen.unchanged
    assert np.bincount(loads.slots).tolist() == kept
    assert loads.dropped == sum(thread % 8 + 1 for thread in range(128)) - sum(kept)
    assert seen.column("loads", "address") == [slot % 64 for slot in loads.slots.tolist()]


def test_peer_11_a_record_must_hold_its_fields() -> None:
    with pytest.raises(UserError) as caught:
        program(WARP_RECORD.replace("size=16", "size=12"))
    assert caught.value.at is not None
    assert "16" in caught.value.render()


def test_peer_12_records_of_24_bytes() -> None:
    probe = """
@Map(level="warp", size=24, cap=2)
class triple:
    a: gl.u64
    b: gl.u64
    c: gl.u64

@probe(pos="kernel", level="warp", before=True)
def arrive():
    triple.save(gl.warpid(), 1, 2)

@probe(pos="kernel", level="warp")
def leave():
    triple.save(gl.warpid() + 100, 3, 4)
"""
    seen = watch(kernel(STORE + "\tret;\n"), probe, (3, 1, 1), (64, 1, 1))
    assert seen.unchanged
    assert seen.column("triple", "a") == [w for k in range(6) for w in (k, k + 100)]
    assert seen.column("triple", "b") == [1, 3] * 6
    assert seen.column("triple", "c") == [2, 4] * 6


def test_peer_13_globals_and_constants_that_the_host_set(tmp_path: Path) -> None:
    source = tmp_path / "globals.cu"
    source.write_text("""
__constant__ int factor[2];
__device__ int offset = 5;
__device__ int table[4] = {1, 2, 3, 4};
__global__ void use(int *out) {
  const int i = threadIdx.x;
  out[i] = factor[i & 1] * i + offset + table[i & 3];
}
int main() {
  const int given[2] = {3, -7}, moved = 40;
  cudaMemcpyToSymbol(factor, given, sizeof given);
  cudaMemcpyToSymbol(offset, &moved, sizeof moved);
  int *out;
  cudaMalloc(&out, 64 * sizeof(int));
  use<<<1, 64>>>(out);
}
""")
    expected = [(3, -7)[i & 1] * i + 40 + (i & 3) + 1 for i in range(64)]
    assert _outputs(source, 1) == expected


def test_peer_14_every_launch_starts_from_the_same_inputs(tmp_path: Path) -> None:
    source = tmp_path / "in_place.cu"
    source.write_text("""
__device__ int launches;
__global__ void grow(int *data) {
  data[threadIdx.x] = data[threadIdx.x] * 3 + 1;
  if (threadIdx.x == 0) data[64] = ++launches;
}
int main() {
  int host[65], *data;
  for (int k = 0; k < 65; ++k) host[k] = k;
  cudaMalloc(&data, sizeof host);
  cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice);
  grow<<<1, 64>>>(data);
}
""")
    assert _outputs(source, 4) == [3 * k + 1 for k in range(64)] + [1]


def _outputs(source: Path, launches: int) -> list[int]:
    """The first buffer, as int32, after so many launches of the probed kernel."""
    device, _ = open_device("sim:a10")
    watched = WatchedProgram(Options(str(source)), device, lambda _step: None)
    plain = load_plain(watched, device, watched.find_kernel(""))
    probed = load_probed(watched, device, plain, program(WARP_RECORD))
    try:
        assert probed.outputs_identical
        for _ in range(launches):
            probed.runner.loaded.run()
        (first, *_) = probed.runner.loaded.read_buffers()
        return [int(value) for value in first.view(np.int32)]
    finally:
        probed.runner.loaded.close()
        plain.runner.loaded.close()
        device.close()


def test_peer_15_indices_beyond_32_bits() -> None:
    """Runs one block that is told that it is the last one of a huge grid."""
    probe = WARP_RECORD.replace('Map(level="warp", size=16)', 'Map(level="kernel", size=16, cap=4)')
    grid = {"x": 2_000_000_000, "y": 60_000, "z": 3}

    def told(text: str) -> str:
        for axis, size in grid.items():
            for name, value in (("nctaid", size), ("ctaid", size - 1)):
                pattern = rf"(mov\.u32\s+\S+\s*,\s*)%{name}\.{axis}"
                text = re.sub(pattern, rf"\g<1>{value}", text)
        return text

    seen = watch(kernel("\tret;\n"), probe, (1, 1, 1), (64, 1, 1), rewritten=told)
    last = 2 * 2_000_000_000 * 60_000 * 3 - 1
    assert sorted(seen.column("seen", "warp")) == [last - 1, last]


def test_peer_15_sizes_beyond_32_bits() -> None:
    woven = weave(parse(kernel("\tret;\n")), "k", program(WARP_RECORD))
    grid = (2_000_000_000, 60_000, 3)
    layout = lay_out(woven, grid, (33, 1, 1))
    assert layout.warps == 2 * 2_000_000_000 * 60_000 * 3
    assert layout.places[0].slots == layout.warps
    assert layout.buffers[layout.places[0].records] >= 16 * layout.warps


@pytest.mark.parametrize("last", [0, 9, 31])
def test_peer_16_a_warp_ends_with_its_last_lane(last: int) -> None:
    body = (
        f"\tsetp.ne.u32 %p1, %r1, {last};\n\t@%p1 ret;\n"
        + loop("\tst.volatile.global.u32 [%a2], %r15;\n", "40")
        + "\tmov.u64 %a5, %clock64; cvt.u32.u64 %r6, %a5;\n\tst.global.u32 [%a1], %r6;\n\tret;\n"
    )
    probe = WARP_RECORD.replace("gl.warpid(), gl.clock() - came", "came, gl.clock()")
    seen = watch(kernel(body), probe, (1, 1, 1), (32, 1, 1))
    (end,) = seen.column("seen", "elapsed")
    assert end & 0xFFFFFFFF >= seen.outputs[0].view(np.uint32)[0]


def test_peer_16_warp_probes_count_where_lane_0_is_not() -> None:
    probe = COUNT.replace('level="thread"', 'level="warp"').format(position="st.global", initial=0)
    body = "\tsetp.lt.u32 %p1, %r1, 20;\n\t@%p1 ret;\n" + STORE + "\tret;\n"
    seen = watch(kernel(body), probe, (2, 1, 1), (32, 1, 1))
    assert seen.unchanged
    assert seen.column("counted", "times") == [1, 1]
