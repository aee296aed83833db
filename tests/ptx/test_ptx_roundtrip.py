"""Modules of nvcc come out of the model byte for byte, and every operand can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuwatch.ptx import parse, unparse
from gpuwatch.ptx.model import Instruction, Module, Vector

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.ptx"))
ENDINGS = {"lf": "\n", "crlf": "\r\n"}
TARGETS = {"sm_75", "sm_80", "sm_86", "sm_90"}


def read(path: Path) -> str:
    with path.open(encoding="ascii", newline="") as file:
        return file.read()


def instructions(module: Module) -> list[Instruction]:
    return [
        statement
        for function in module.functions
        for statement in function.body or ()
        if isinstance(statement, Instruction)
    ]


def corpus_module(name: str) -> Module:
    path = Path(__file__).parent / "corpus" / f"{name}.ptx"
    return parse(read(path), path.name)


@pytest.fixture(params=CORPUS, ids=lambda path: path.stem)
def text(request: pytest.FixtureRequest) -> str:
    return read(request.param)


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
@pytest.mark.parametrize("final", [True, False], ids=["final", "no_final"])
def test_text_survives(text: str, ending: str, final: bool) -> None:
    shaped = text.rstrip() + ("\n" if final else "")
    shaped = shaped.replace("\n", ending)
    assert unparse(parse(shaped)) == shaped


def test_every_instruction_is_read(text: str) -> None:
    found = instructions(parse(text))
    assert found
    for instruction in found:
        written = text[instruction.start : instruction.end]
        assert written.endswith(";")
        assert ".".join(instruction.tokens) in written
        assert bool(instruction.operands) == bool(re.search(r"\s", bare(written)))


def bare(written: str) -> str:
    """The instruction without its guard."""
    return re.sub(r"^@!?[%\w]+\s+", "", written)


def test_immediates_and_registers_are_those_written(text: str) -> None:
    for instruction in instructions(parse(text)):
        written = text[instruction.start : instruction.end]
        for name in re.findall(r"%\w+(?:\.\w+)?", bare(written)):
            assert f"'{name}'" in repr(instruction.operands), written


def test_line_endings_do_not_change_the_model(text: str) -> None:
    plain = instructions(parse(text))
    windows = instructions(parse(text.replace("\n", "\r\n")))
    assert [(i.tokens, i.guard, i.operands, i.line) for i in plain] == [
        (i.tokens, i.guard, i.operands, i.line) for i in windows
    ]


def test_corpus_covers_what_it_should() -> None:
    modules = [parse(read(path), path.name) for path in CORPUS]
    assert {module.target for module in modules} <= TARGETS
    opcodes = {instruction.opcode for module in modules for instruction in instructions(module)}
    assert {"call", "brx", "atom", "shfl", "tex", "sust", "wmma", "bar", "fma"} <= opcodes


def test_files_are_bare_names(text: str) -> None:
    files = parse(text).files
    assert files
    assert not any("/" in name for name in files.values())


def test_source_lines_follow_loc() -> None:
    module = corpus_module("gemm")
    source = (Path(__file__).parent / "corpus" / "gemm.cu").read_text().splitlines()
    naive, tiled = module.entries()
    product = next(
        i for i in naive.body or () if isinstance(i, Instruction) and i.tokens[0] == "fma"
    )
    assert "sum +=" in source[product.line - 1]
    barrier = next(
        i for i in tiled.body or () if isinstance(i, Instruction) and i.opcode in ("bar", "barrier")
    )
    assert source[barrier.line - 1].strip() == "__syncthreads();"


def test_parameters_of_structs() -> None:
    entry = corpus_module("structs").entries()[0]
    settings, inputs, outputs = entry.parameters
    assert (settings.type, settings.align, settings.count) == ("b8", 16, 32)
    assert (inputs.type, inputs.count, outputs.type) == ("u64", 0, "u64")
    assert any(directive.startswith(".maxntid 256") for directive in entry.directives)


def test_vector_loads() -> None:
    loads = [i for i in instructions(corpus_module("structs")) if "v4" in i.tokens]
    assert loads
    for load in loads:
        (vector,) = [operand for operand in load.operands if isinstance(operand, Vector)]
        assert len(vector.items) == 4
