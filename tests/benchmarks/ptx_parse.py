"""Lines per second of reading a large generated module; run as a program, not by pytest."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from gpuwatch.ptx import parse, unparse
from gpuwatch.ptx.model import Instruction, Module

LINES = 77_000
LINES_PER_FUNCTION = 7_000

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


def generate(lines: int = LINES) -> str:
    """A module of `lines` lines in functions of loads, arithmetic, labels and branches."""
    pieces = [HEADER]
    left = lines - HEADER.count("\n")
    number = 0
    while left > 0:
        function = _function(number, min(left, LINES_PER_FUNCTION))
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


def read_operands(module: Module) -> int:
    """Reads the operands of every instruction; the number of instructions."""
    found = 0
    for function in module.functions:
        for statement in function.body or ():
            if isinstance(statement, Instruction):
                _ = statement.operands
                found += 1
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lines", type=int, default=LINES, help="lines of the module")
    options.add_argument("--repeat", type=int, default=3, help="runs; the best one counts")
    chosen = options.parse_args(arguments)
    text = generate(chosen.lines)
    lines = text.count("\n")
    seconds: dict[str, list[float]] = {"parse": [], "operands": [], "unparse": []}
    for _ in range(chosen.repeat):
        start = time.perf_counter()
        module = parse(text)
        seconds["parse"].append(time.perf_counter() - start)
        start = time.perf_counter()
        read_operands(module)
        seconds["operands"].append(time.perf_counter() - start)
        start = time.perf_counter()
        same = unparse(module) == text
        seconds["unparse"].append(time.perf_counter() - start)
        if not same:
            raise SystemExit("the module did not come out as it went in")
    print(f"{lines} lines, best of {chosen.repeat}")
    for step, times in seconds.items():
        print(f"{step:<9} {min(times):7.3f} s {lines / min(times):12,.0f} lines/s")


if __name__ == "__main__":
    main()
