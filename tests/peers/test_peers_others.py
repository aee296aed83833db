"""What other tools do wrong: threads beyond a bound, silent misses, costly empty probes, unclear
refusals, arguments that arrive shifted."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from peer_support import COUNT, HEADER, STORE, WARP_RECORD, kernel, program, watch

from gpuwatch.device import open_device
from gpuwatch.engine.options import Options
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.errors import UserError
from gpuwatch.instrument import weave
from gpuwatch.ptx import parse
from gpuwatch.ptx.model import Instruction
from gpuwatch.toolchain import assemble, find


def test_a_map_of_threads_has_no_bound_at_1024() -> None:
    seen = watch(
        kernel("\tld.global.u32 %r5, [%a2];\n" + STORE + "\tret;\n"),
        COUNT.format(position="ld.global", initial=0),
        (3, 1, 1),
        (1024, 1, 1),
    )
    assert seen.unchanged
    assert seen.column("counted", "times") == [1] * 3072


def test_a_position_that_nothing_matches_is_told() -> None:
    with pytest.raises(UserError, match=r"atom\.global") as caught:
        weave(
            parse(kernel(STORE + "\tret;\n")),
            "k",
            program(COUNT.format(position="atom.global", initial=0)),
        )
    assert caught.value.at is not None
    assert caught.value.hint


def test_an_empty_probe_costs_no_instruction() -> None:
    text = kernel("\tld.global.u32 %r5, [%a2];\n" + STORE + "\tret;\n")
    probe = """
@probe(pos="ld.global:st.global", level="thread")
def nothing():
    pass
"""
    woven = weave(parse(text), "k", program(probe))
    counts = [
        sum(isinstance(one, Instruction) for one in parse(each).entries()[0].body or ())
        for each in (text, woven.text)
    ]
    assert counts[0] == counts[1]


def test_records_after_an_exit_in_one_branch_are_kept() -> None:
    body = "\tsetp.ge.u32 %p1, %r1, 33;\n\t@%p1 exit;\n" + STORE + "\texit;\n"
    seen = watch(kernel(body), WARP_RECORD, (2, 1, 1), (96, 1, 1))
    assert seen.unchanged
    assert seen.column("seen", "warp") == [0, 1, 2, 3, 4, 5]


def test_arguments_lie_at_their_natural_alignment(tmp_path: Path) -> None:
    source = tmp_path / "aligned.cu"
    source.write_text("""
struct Odd { char tag; double value; short tail; };
__global__ void mixed(char a, float4 b, short c, Odd d, double *out, unsigned char e, float2 f) {
  out[threadIdx.x] = a + b.x + b.w + c + d.tag + d.value + d.tail + e + f.y + threadIdx.x;
}
int main() {
  double *out;
  cudaMalloc(&out, 32 * sizeof(double));
  mixed<<<1, 32>>>(1, make_float4(2, 0, 0, 3), -4, Odd{5, 6.5, 7}, out, 200, make_float2(0, 0.25f));
}
""")
    device, _ = open_device("sim:a10")
    watched = WatchedProgram(Options(str(source)), device, lambda _step: None)
    launch = watched.launch(watched.find_kernel(""))
    block = launch.parameters
    assert block[0] == 1
    assert struct.unpack_from("<4fh", block, 16) == (2.0, 0.0, 0.0, 3.0, -4)
    assert struct.unpack_from("<bxxxxxxxdh", block, 40) == (5, 6.5, 7)
    assert [place.offset for place in launch.relocations] == [64]
    assert block[72] == 200
    assert struct.unpack_from("<2f", block, 80) == (0.0, 0.25)


@pytest.mark.parametrize(
    ("version", "target"), [("6.0", "sm_90"), ("99.0", "sm_86"), ("8.0", "sm_100")]
)
def test_versions_that_do_not_fit_are_told(version: str, target: str) -> None:
    text = kernel("\tret;\n").replace("8.0", version).replace("sm_86", target)
    assert text.startswith(HEADER[:9])
    with pytest.raises(UserError) as caught:
        assemble(find(), text, target, "k")
    assert "version" in caught.value.render().lower()
