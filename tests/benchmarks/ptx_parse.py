"""Lines per second of reading a large generated module; run as a program, not by pytest."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from gpuwatch.ptx import parse, unparse
from gpuwatch.ptx.flow import basic_blocks, liveness
from gpuwatch.ptx.model import Instruction, Module
from gpuwatch.ptx.scopes import flatten

LINES = 77_000
SHAPES = {"one kernel": LINES, "many small ones": 50}
"""Lines of each function of the module."""

HEADER = """\
.version 9.0
.target sm_86
.address_size 64
.file\t1 "generated.cu"
"""
HEAD = """\
.visible .entry kernel_{number}(
\t.param .u64 kernel_{number}_param_0
)
{{
\t.reg .pred \t%p<64>;
\t.reg .b32 \t%r<4096>;
\t.reg .f32 \t%f<4096>;
\t.reg .b64 \t%rd<4096>;
"""
BLOCK = """\
$L__BB{number}_{block}:
\t.loc\t1 {line} 5
\tld.global.nc.f32 \t%f{a}, [%rd{a}+{offset}];
\tld.shared.v4.f32 \t{{%f{b}, %f{c}, %f{d}, %f{e}}}, [%r{a}+16];
\tfma.rn.f32 \t%f{b}, %f{a}, %f{c}, %f{d};
\tmul.wide.s32 \t%rd{b}, %r{a}, 4;
\tadd.s64 \t%rd{c}, %rd{a}, %rd{b};
\tmul.f32 \t%f{d}, %f{e}, 0f3F000000;
\tsetp.lt.s32 \t%p{p}, %r{a}, {offset};
\t@%p{p} bra \t$L__BB{number}_{block};
"""
TAIL = "\tret;\n}\n"


def generate(lines: int = LINES, per_function: int = LINES) -> str:
    """A module of `lines` lines in functions of loads, arithmetic, labels and branches."""
    pieces = [HEADER]
    left = lines - HEADER.count("\n")
    number = 0
    while left > 0:
        function = _function(number, min(left, per_function))
        pieces.append(function)
        left -= function.count("\n")
        number += 1
    return "".join(pieces)


def _function(number: int, lines: int) -> str:
    """One kernel; comment lines fill it up to `lines` when that is no whole number of blocks."""
    room = max(lines - HEAD.count("\n") - TAIL.count("\n"), 0)
    blocks, rest = divmod(room, BLOCK.count("\n"))
    body = "".join(_block(number, block) for block in range(blocks))
    return HEAD.format(number=number) + body + "\t// end of the blocks\n" * rest + TAIL


def _block(number: int, block: int) -> str:
    first = block * 5 % 4000
    names = {name: first + place for place, name in enumerate("abcde")}
    return BLOCK.format(
        number=number, block=block, line=block + 1, offset=block * 4, p=block % 64, **names
    )


def read_bodies(module: Module) -> int:
    """Reads the statements of all functions; their number."""
    return sum(len(function.body or ()) for function in module.functions)


def read_operands(module: Module) -> int:
    """Reads the operands of every instruction; the number of instructions."""
    found = 0
    for function in module.functions:
        for statement in function.body or ():
            if isinstance(statement, Instruction):
                _ = statement.operands
                found += 1
    return found


def resolve(module: Module) -> int:
    """Resolves scopes, cuts blocks and solves liveness of every function; the number of blocks."""
    found = 0
    for function in module.functions:
        flat = flatten(function)
        blocks = basic_blocks(flat)
        liveness(flat, blocks)
        found += len(blocks)
    return found


def write(module: Module) -> None:
    if unparse(module) != module.text:
        raise SystemExit("the module did not come out as it went in")


STEPS: dict[str, Callable[[Module], object]] = {
    "bodies": read_bodies,
    "operands": read_operands,
    "scopes, blocks, liveness": resolve,
    "unparse": write,
}
"""What is done to a module that was parsed, one after the other."""


def measure(text: str, repeat: int) -> dict[str, float]:
    """Seconds of processor time of each step, the quickest of `repeat` runs."""
    seconds: dict[str, list[float]] = {name: [] for name in ("parse", *STEPS)}
    for _ in range(repeat):
        start = time.process_time()
        module = parse(text)
        seconds["parse"].append(time.process_time() - start)
        for name, step in STEPS.items():
            start = time.process_time()
            step(module)
            seconds[name].append(time.process_time() - start)
    return {name: min(times) for name, times in seconds.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lines", type=int, default=LINES, help="lines of the module")
    options.add_argument("--repeat", type=int, default=3, help="runs; the best one counts")
    chosen = options.parse_args(arguments)
    for shape, per_function in SHAPES.items():
        text = generate(chosen.lines, per_function)
        lines = text.count("\n")
        print(f"{shape}: {lines:,} lines")
        for step, seconds in measure(text, chosen.repeat).items():
            print(f"  {step:<25} {seconds:7.3f} s {lines / seconds:12,.0f} lines/s")


if __name__ == "__main__":
    main()
