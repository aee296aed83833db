"""Code leads back to its source lines, through everything that was inlined."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.ptx import parse
from gpuwatch.ptx.model import Function, Instruction, Module
from gpuwatch.ptx.source import Place, SourceMap

CORPUS = Path(__file__).parent / "corpus"
MODULE = """\
.version 8.5
.target sm_80
.address_size 64
.file 1 "kernel.cu"
.file 2 "inner.h"
.section .debug_str
{
$L__info_string0: // a comment : .b8 7
.b8 111,117
.b8 116, 101,114,0
$L__info_string1:
.b8 105,110,110,101,114,0
}
.entry k()
{
    mov.u32 %r0, 0;
    .loc 1 10 3
    mov.u32 %r1, 1;
    .loc 1 5 7, function_name $L__info_string0, inlined_at 1 10 3
    mov.u32 %r2, 2;
    .loc 2 4 1, function_name $L__info_string1, inlined_at 1 5 7
    mov.u32 %r3, 3;
    .loc 2 4 1, function_name $L__info_string1, inlined_at 1 99 9
    mov.u32 %r4, 4;
    .loc 3 0 0
    ret;
}
"""
KERNEL = Place("kernel.cu", 10, 3)
OUTER = Place("kernel.cu", 5, 7, "outer")
INNER = Place("inner.h", 4, 1, "inner")


def places(module: Module, function: Function) -> list[tuple[Place, ...]]:
    found = SourceMap(module, function)
    return [found.at(each.start) for each in function.body or () if isinstance(each, Instruction)]


def test_chains() -> None:
    module = parse(MODULE)
    assert places(module, module.functions[0]) == [
        (),
        (KERNEL,),
        (OUTER, KERNEL),
        (INNER, OUTER, KERNEL),
        (INNER, Place("kernel.cu", 99, 9)),
        (Place("", 0, 0),),
    ]


def test_a_name_at_an_offset() -> None:
    text = MODULE.replace("function_name $L__info_string0", "function_name $L__info_string0+2")
    module = parse(text)
    assert places(module, module.functions[0])[2][0].function == "ter"


def test_a_function_inlined_into_itself() -> None:
    text = MODULE.replace("inlined_at 1 10 3", "inlined_at 1 5 7")
    module = parse(text)
    assert places(module, module.functions[0])[2] == (OUTER, Place("kernel.cu", 5, 7))


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.ptx")), ids=lambda path: path.stem)
def test_first_places_are_those_of_the_instructions(path: Path) -> None:
    module = parse(path.read_text(), path.name)
    for function in module.functions:
        found = SourceMap(module, function)
        for each in function.body or ():
            if isinstance(each, Instruction):
                chain = found.at(each.start)
                first = (chain[0].path, chain[0].line) if chain else ("", 0)
                assert first == (module.files.get(each.file, ""), each.line)


def test_inlined_code_of_nvcc() -> None:
    module = parse((CORPUS / "templates.ptx").read_text())
    source = (CORPUS / "templates.cu").read_text().splitlines()
    chains = {chain for entry in module.entries() for chain in places(module, entry)}
    nested = [chain for chain in chains if len(chain) == 3]
    assert nested
    for shuffle, caller, kernel in nested:
        assert "shfl" in shuffle.function
        assert "warp_sum" in caller.function
        assert "shfl" in source[caller.line - 1]
        assert kernel.function == ""
        assert "warp_sum" in source[kernel.line - 1]
