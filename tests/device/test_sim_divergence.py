"""Random structured programs with branches, loops, calls, recursion and waits, against Python.

A program is a tree of tuples that is both written as PTX and run thread by thread.
"""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from sim_support import run

from gpuwatch.device.sim import blocks, dispatch, frame

Statement = tuple[object, ...]
Body = list[Statement]
MASK = 0xFFFFFFFF
COUNT = 4
"""Variables of a body."""
_OPERATIONS = {
    "add.u32": lambda a, b: a + b,
    "sub.u32": lambda a, b: a - b,
    "mul.lo.u32": lambda a, b: a * b,
    "xor.b32": lambda a, b: a ^ b,
    "and.b32": lambda a, b: a & b,
}
_VARIABLES = st.integers(0, COUNT - 1)


def _simple() -> st.SearchStrategy[Statement]:
    compute = st.tuples(st.just("compute"), st.sampled_from(sorted(_OPERATIONS)), _VARIABLES,
                        _VARIABLES, _VARIABLES)  # fmt: skip
    constant = st.tuples(st.just("constant"), _VARIABLES, st.integers(0, 9))
    return st.one_of(compute, constant)


def _bodies(calls: st.SearchStrategy[Statement] | None, size: int) -> st.SearchStrategy[Body]:
    """Bodies of threads that need no others."""
    leaf = _simple() if calls is None else st.one_of(_simple(), calls)

    def nested(inner: st.SearchStrategy[Statement]) -> st.SearchStrategy[Statement]:
        some = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(
            st.tuples(st.just("if"), _VARIABLES, st.integers(0, 3), some, some),
            st.tuples(st.just("loop"), _VARIABLES, some),
        )

    statement = st.recursive(leaf, nested, max_leaves=6)
    return st.lists(statement, min_size=1, max_size=size)


_CALLS = st.one_of(
    st.tuples(st.just("call"), st.integers(0, 2), _VARIABLES, _VARIABLES, _VARIABLES),
    st.tuples(st.just("pointer"), _VARIABLES, _VARIABLES, _VARIABLES, _VARIABLES),
)
_WAITS = st.one_of(
    st.tuples(st.just("shuffle"), _VARIABLES, _VARIABLES, st.integers(1, 31)),
    st.tuples(st.just("ballot"), _VARIABLES, _VARIABLES),
    st.tuples(st.just("exchange"), _VARIABLES, _VARIABLES, st.integers(1, 31)),
)
_MAINS = st.lists(
    st.one_of(_bodies(_CALLS, 3), st.lists(_WAITS, min_size=1, max_size=2)), min_size=2, max_size=4
)
_FUNCTIONS = st.tuples(_bodies(None, 3), _bodies(None, 3), _bodies(None, 3))


_REGISTERS = f".reg .b32 %v<{COUNT}>, %t, %depth, %own;\n\t.reg .pred %p;\n\t.reg .b64 %rd<6>;"


class Writer:
    """PTX of bodies. Function 2 is recursive: it calls itself while its depth is not 0."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._labels = 0

    def emit(self, line: str) -> None:
        self.lines.append("\t" + line)

    def label(self) -> str:
        self._labels += 1
        return f"L{self._labels}"

    def body(self, statements: Body) -> None:
        for statement in statements:
            getattr(self, f"_{statement[0]}")(*statement[1:])

    def call(self, target: str, to: int, a: int, b: int, prototype: str = "") -> None:
        self.emit("{\n\t.param .b32 p0;\n\t.param .b32 p1;\n\t.param .b32 p2;\n\t.param .b32 r0;")
        for k, name in enumerate((f"%v{a}", f"%v{b}", "%depth")):
            self.emit(f"st.param.b32 [p{k}], {name};")
        self.emit(f"call (r0), {target}, (p0, p1, p2){prototype};")
        self.emit(f"ld.param.b32 %v{to}, [r0];\n\t}}")

    def _compute(self, operation: str, to: int, a: int, b: int) -> None:
        self.emit(f"{operation} %v{to}, %v{a}, %v{b};")

    def _constant(self, to: int, value: int) -> None:
        self.emit(f"mov.u32 %v{to}, {value};")

    def _if(self, variable: int, value: int, yes: Body, no: Body) -> None:
        other, end = self.label(), self.label()
        self.emit(f"and.b32 %t, %v{variable}, 3;\n\tsetp.ne.u32 %p, %t, {value};")
        self.emit(f"@%p bra {other};")
        self.body(yes)
        self.emit(f"bra {end};\n{other}:")
        self.body(no)
        self.lines.append(f"{end}:")

    def _loop(self, variable: int, inner: Body) -> None:
        head, end = self.label(), self.label()
        self.emit(f"{{\n\t.reg .b32 %left;\n\tand.b32 %left, %v{variable}, 3;\n{head}:")
        self.emit(f"setp.eq.u32 %p, %left, 0;\n\t@%p bra {end};\n\tsub.u32 %left, %left, 1;")
        self.body(inner)
        self.emit(f"bra {head};\n{end}:\n\t}}")

    def _call(self, number: int, to: int, a: int, b: int) -> None:
        self.call(f"f{number}", to, a, b)

    def _pointer(self, chooser: int, to: int, a: int, b: int) -> None:
        self.emit(f"and.b32 %t, %v{chooser}, 1;\n\tsetp.eq.u32 %p, %t, 0;")
        self.emit("mov.u64 %rd4, f0;\n\tmov.u64 %rd5, f1;\n\tselp.b64 %rd4, %rd4, %rd5, %p;")
        self.call("%rd4", to, a, b, ", shape")

    def _shuffle(self, to: int, source: int, mask: int) -> None:
        self.emit(f"shfl.sync.bfly.b32 %v{to}, %v{source}, {mask}, 31, -1;")

    def _ballot(self, to: int, source: int) -> None:
        self.emit(f"and.b32 %t, %v{source}, 1;\n\tsetp.ne.u32 %p, %t, 0;")
        self.emit(f"vote.sync.ballot.b32 %v{to}, %p, -1;")

    def _exchange(self, to: int, source: int, mask: int) -> None:
        self.emit(f"st.shared.u32 [%own], %v{source};\n\tbar.sync 0;")
        self.emit(f"xor.b32 %t, %own, {4 * mask};\n\tld.shared.u32 %v{to}, [%t];\n\tbar.sync 0;")

    def function(self, number: int, body: Body) -> str:
        self.lines = []
        self.emit(
            f".reg .b32 %v<{COUNT}>, %t, %depth, %own;\n\t.reg .pred %p;\n\t.reg .b64 %rd<6>;"
        )
        self.emit("ld.param.u32 %v0, [a];\n\tld.param.u32 %v1, [b];\n\tld.param.u32 %depth, [c];")
        self.emit(f"mov.u32 %v2, {number + 5};\n\txor.b32 %v3, %v0, %v1;")
        self.body(body)
        if number == 2:
            end = self.label()
            self.emit(f"setp.eq.u32 %p, %depth, 0;\n\t@%p bra {end};\n\tsub.u32 %depth, %depth, 1;")
            self.call("f2", 1, 3, 0)
            self.lines.append(f"{end}:")
        self.emit("add.u32 %v0, %v0, %v1;\n\tst.param.b32 [r], %v0;\n\tret;")
        inside = "\n".join(self.lines)
        head = ".param .b32 a, .param .b32 b, .param .b32 c"
        return f".func (.param .b32 r) f{number} ({head})\n{{\n{inside}\n}}\n"

    def kernel(self, main: list[Body]) -> str:
        self.lines = []
        self.emit(
            f".reg .b32 %v<{COUNT}>, %t, %depth, %own;\n\t.reg .pred %p;\n\t.reg .b64 %rd<6>;"
        )
        self.emit("shape: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _, "
                  ".param .b32 _);")  # fmt: skip
        self.emit("ld.param.u64 %rd1, [out];\n\tmov.u32 %v0, %tid.x;\n\tshl.b32 %own, %v0, 2;")
        self.emit("mov.u32 %v1, 3;\n\tmul.lo.u32 %v2, %v0, 7;\n\tshr.u32 %v3, %v0, 3;")
        self.emit("and.b32 %depth, %v0, 3;")
        for body in main:
            self.body(body)
        self.emit("cvt.u64.u32 %rd2, %own;\n\tadd.s64 %rd3, %rd1, %rd2;")
        for k in range(COUNT):
            self.emit(f"st.global.u32 [%rd3+{k * 256}], %v{k};")
        inside = "\n".join(self.lines)
        return (
            ".shared .align 4 .b8 place[256];\n"
            f".visible .entry k(.param .u64 out)\n{{\n{inside}\n\tret;\n}}\n"
        )


def write(functions: tuple[Body, Body, Body], main: list[Body]) -> str:
    writer = Writer()
    parts = [writer.function(k, body) for k, body in enumerate(functions)]
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    declared = "".join(part[: part.index("\n{")] + ";\n" for part in parts)
    return head + declared + "".join(parts) + writer.kernel(main)


class Runner:
    """What a thread computes."""

    def __init__(self, functions: tuple[Body, Body, Body]) -> None:
        self._functions = functions

    def run(self, body: Body, v: list[int], depth: int) -> None:
        for statement in body:
            kind, *rest = statement
            getattr(self, f"_{kind}")(v, depth, *rest)

    def call(self, number: int, a: int, b: int, depth: int) -> int:
        v = [a, b, number + 5, a ^ b]
        self.run(self._functions[number], v, depth)
        if number == 2 and depth:
            v[1] = self.call(2, v[3], v[0], depth - 1)
        return (v[0] + v[1]) & MASK

    @staticmethod
    def _compute(v: list[int], _: int, operation: str, to: int, a: int, b: int) -> None:
        v[to] = _OPERATIONS[operation](v[a], v[b]) & MASK

    @staticmethod
    def _constant(v: list[int], _: int, to: int, value: int) -> None:
        v[to] = value

    def _if(self, v: list[int], depth: int, on: int, value: int, yes: Body, no: Body) -> None:
        self.run(yes if v[on] & 3 == value else no, v, depth)

    def _loop(self, v: list[int], depth: int, on: int, inner: Body) -> None:
        for _ in range(v[on] & 3):
            self.run(inner, v, depth)

    def _call(self, v: list[int], depth: int, number: int, to: int, a: int, b: int) -> None:
        v[to] = self.call(number, v[a], v[b], depth)

    def _pointer(self, v: list[int], depth: int, on: int, to: int, a: int, b: int) -> None:
        v[to] = self.call(v[on] & 1, v[a], v[b], depth)


def wait(statement: Statement, threads: list[list[int]]) -> None:
    """A statement in which threads take from each other."""
    kind, to, source, *more = statement
    assert isinstance(to, int) and isinstance(source, int)
    values = [v[source] for v in threads]
    for t, v in enumerate(threads):
        if kind == "ballot":
            first = t // 32 * 32
            v[to] = sum((values[first + k] & 1) << k for k in range(32))
        else:
            assert isinstance(more[0], int)
            v[to] = values[t ^ more[0]]


def expected(functions: tuple[Body, Body, Body], main: list[Body]) -> list[list[int]]:
    runner = Runner(functions)
    threads = [[t, 3, t * 7, t >> 3] for t in range(64)]
    for body in main:
        if body[0][0] in ("shuffle", "ballot", "exchange"):
            for statement in body:
                wait(statement, threads)
        else:
            for t, v in enumerate(threads):
                runner.run(body, v, t & 3)
    return [[v[k] for v in threads] for k in range(COUNT)]


def check(functions: tuple[Body, Body, Body], main: list[Body]) -> None:
    out = np.zeros((COUNT, 64), np.uint32)
    got = run(write(functions, main), "k", (1, 1, 1), (64, 1, 1), [out]).buffers[0]
    assert got.tolist() == expected(functions, main)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(functions=_FUNCTIONS, main=_MAINS)
def test_random_programs(functions: tuple[Body, Body, Body], main: list[Body]) -> None:
    check(functions, main)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(functions=_FUNCTIONS, main=_MAINS, quantum=st.sampled_from([1, 60, 400]))
def test_random_programs_whose_lanes_and_warps_take_turns(
    functions: tuple[Body, Body, Body], main: list[Body], quantum: int
) -> None:
    """As if a loop polled: lanes are hidden and warps suspended at any point."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "polling_headers", lambda program: range(len(program.blocks)))
        for module in (dispatch, frame):
            patch.setattr(module, "POLLING_QUANTUM", quantum)
        check(functions, main)
