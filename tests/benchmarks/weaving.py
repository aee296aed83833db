"""Lines per second of weaving, for probes at the kernel's ends and at instructions, next to the
figures of Neutrino; run as a program, not by pytest."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from gpuwatch.instrument import weave
from gpuwatch.probe import parse_python
from gpuwatch.probe.model import Program
from gpuwatch.ptx import parse

SIZES = (1_000, 5_000, 20_000, 77_000)
NEUTRINO = {
    "kernel": "1,500,000 to 1,700,000",
    "counter": "187,000, falling to 71,000 at 77,000 lines",
    "addresses": "187,000, falling to 71,000 at 77,000 lines",
}
"""Lines per second measured with Neutrino on PTX of up to 77,000 lines."""

HEAD = """\
.version 9.0
.target sm_86
.address_size 64
.file\t1 "generated.cu"
.visible .entry kernel(
\t.param .u64 kernel_param_0
)
{
\t.reg .pred \t%p<64>;
\t.reg .b32 \t%r<4096>;
\t.reg .f32 \t%f<4096>;
\t.reg .b64 \t%rd<4096>;
"""
BLOCK = """\
$L__BB0_{number}:
\t.loc\t1 {number} 5
\tld.global.nc.f32 \t%f{a}, [%rd{a}+{offset}];
\tld.shared.v4.f32 \t{{%f{b}, %f{c}, %f{d}, %f{e}}}, [%r{a}+16];
\tfma.rn.f32 \t%f{b}, %f{a}, %f{c}, %f{d};
\tmul.wide.s32 \t%rd{b}, %r{a}, 4;
\tadd.s64 \t%rd{c}, %rd{a}, %rd{b};
\tmul.f32 \t%f{d}, %f{e}, 0f3F000000;
\tsetp.lt.s32 \t%p{p}, %r{a}, {offset};
\t@%p{p} bra \t$L__BB0_{number};
"""
TAIL = "\tret;\n}\n"

PREAMBLE = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe
"""
KERNEL = """
@Map(level="warp", type="array", size=16, cap=1)
class spans:
    start: gl.u64
    elapsed: gl.u64

start: gl.u64 = 0

@probe(pos="kernel", level="warp", before=True)
def enter():
    start = gl.clock()

@probe(pos="kernel", level="warp")
def leave():
    spans.save(start, gl.clock() - start)
"""
COUNTER = """
@Map(level="thread", type="array", size=16, cap=1)
class loads:
    count: gl.u64
    total: gl.u64

count: gl.u64 = 0
total: gl.u64 = 0

@probe(pos="ld.global", level="thread", before=True)
def load():
    count = count + 1
    total = total + gl.bytes

@probe(pos="kernel", level="thread")
def leave():
    loads.save(count, total)
"""
ADDRESSES = """
@Map(level="warp", type="array", size=16, cap=64)
class accesses:
    address: gl.u64
    size: gl.u32
    lanes: gl.u32

@probe(pos="ld.global", level="warp", before=True)
def load():
    accesses.save(gl.addr, gl.bytes, gl.active)
"""
PROGRAMS = {"kernel": KERNEL, "counter": COUNTER, "addresses": ADDRESSES}


def generate(lines: int) -> str:
    """A module of one kernel of `lines` lines, one in ten of which is a global load."""
    blocks = (lines - HEAD.count("\n") - TAIL.count("\n")) // BLOCK.count("\n")
    return HEAD + "".join(map(_block, range(blocks))) + TAIL


def _block(number: int) -> str:
    first = number * 5 % 4000
    names = {name: first + place for place, name in enumerate("abcde")}
    return BLOCK.format(number=number, offset=number * 4, p=number % 64, **names)


def best(repeat: int, action: Callable[[], object]) -> float:
    """Seconds of processor time of the quickest of several runs: one thread does the work."""
    seconds = []
    for _ in range(repeat):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return min(seconds)


def measure(text: str, program: Program, repeat: int) -> tuple[float, float]:
    """Lines per second of weaving alone, and of reading and weaving, from a fresh module."""
    lines = text.count("\n")
    alone = []
    for _ in range(repeat):
        module = parse(text)
        assert module.entries()[0].body  # read here, where bodies are read late
        alone.append(best(1, lambda module=module: weave(module, "kernel", program)))
    both = best(repeat, lambda: weave(parse(text), "kernel", program))
    return lines / min(alone), lines / both


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lines", type=int, nargs="*", default=SIZES, help="lines per module")
    options.add_argument("--repeat", type=int, default=3, help="runs; the best one counts")
    chosen = options.parse_args(arguments)
    print(f"{'probe':<10} {'lines':>7} {'weave, lines/s':>15} {'read and weave':>15}  Neutrino")
    for name, text in PROGRAMS.items():
        program = parse_python(PREAMBLE + text, f"{name}.py")
        for lines in chosen.lines:
            alone, both = measure(generate(lines), program, chosen.repeat)
            print(f"{name:<10} {lines:>7,} {alone:>15,.0f} {both:>15,.0f}  {NEUTRINO[name]}")


if __name__ == "__main__":
    main()
