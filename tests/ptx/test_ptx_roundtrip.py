"""Modules of all compilers come out of the model byte for byte, and every operand can be read."""

from __future__ import annotations

import random
import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch import toolchain
from gpuwatch.ptx import parse, unparse
from gpuwatch.ptx.model import Instruction, Module, Statement, Vector

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.ptx"))
ENDINGS = {"lf": "\n", "crlf": "\r\n"}
TARGETS = {"sm_75", "sm_80", "sm_86", "sm_90", "sm_90a", "sm_100a"}
OPCODES = {
    *("call", "brx", "atom", "shfl", "tex", "sust", "wmma", "bar", "fma", "wgmma", "mbarrier"),
    *("elect", "setmaxnreg", "stmatrix", "mapa", "griddepcontrol", "tcgen05"),
}


def read(path: Path) -> str:
    with path.open(encoding="ascii", newline="") as file:
        return file.read()


def tidied(written: str) -> str:
    """The instruction without comments, without guard, and with its opcode in one piece."""
    plain = re.sub(r"//[^\n]*|/\*[\s\S]*?\*/", " ", written)
    plain = re.sub(r"\s+(?=\.[a-z])", "", plain)
    return re.sub(r"^@\s*!?\s*[%\w]+\s+", "", plain)


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
        written = tidied(text[instruction.start : instruction.end])
        opcode = ".".join(instruction.tokens)
        assert written.startswith(opcode)
        assert written.endswith(";")
        assert bool(instruction.operands) == bool(written[len(opcode) : -1].strip())


def test_immediates_and_registers_are_those_written(text: str) -> None:
    for instruction in instructions(parse(text)):
        written = text[instruction.start : instruction.end]
        for name in re.findall(r"%\w+(?:\.\w+)?", tidied(written)):
            assert f"'{name}'" in repr(instruction.operands), written


def meaning(instruction: Instruction) -> tuple[object, ...]:
    """All but the spelling of literals and constant expressions."""
    operands = re.sub(r"text=('|\").*?\1, ", "", repr(instruction.operands))
    return instruction.tokens, instruction.guard, operands, instruction.line, instruction.file


def test_line_endings_do_not_change_the_model(text: str) -> None:
    plain = instructions(parse(text))
    windows = instructions(parse(text.replace("\n", "\r\n")))
    assert list(map(meaning, plain)) == list(map(meaning, windows))


GAPS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*\n?|/\*[\s\S]*?\*/|\s+|[^\s"/]+|/')
FILLERS = [
    " ",
    "\t",
    "\n",
    "\r\n",
    " \n\n",
    "/**/",
    "/* { */",
    " // } ;\n",
    '\t/* " */\n',
    '// "\n',
]


def respaced(text: str, seed: int) -> str:
    """The text with other white space and further comments between its tokens."""
    chance = random.Random(seed)

    def filler() -> str:
        return "".join(chance.choices(FILLERS, k=chance.randint(1, 2)))

    def changed(piece: str) -> str:
        if piece[0] in '"/' or chance.random() < 0.7:
            return piece
        if piece.isspace():
            return filler()
        return re.sub(r"[,\[\]{}();]", lambda mark: filler() + mark[0] + filler(), piece)

    return "".join(map(changed, GAPS.findall(text)))


def statements(module: Module) -> list[object]:
    """What the statements of all bodies mean, without their places in the text."""
    found: list[object] = []
    for function in module.functions:
        for each in function.body or ():
            if isinstance(each, Instruction):
                found.append(meaning(each))
            else:
                found.append((type(each), vars_of(each)))
    return found


def vars_of(statement: Statement) -> list[object]:
    names = [each.name for each in fields(statement) if each.name not in ("start", "end")]
    return [getattr(statement, name) for name in names]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(CORPUS), st.integers(0, 1 << 30))
def test_white_space_and_comments_change_nothing(path: Path, seed: int) -> None:
    plain = read(path)
    other = respaced(plain, seed)
    module = parse(other)
    assert unparse(module) == other
    assert list(map(meaning, instructions(module))) == list(
        map(meaning, instructions(parse(plain)))
    )


def test_ptxas_takes_the_corpus(text: str, tmp_path: Path) -> None:
    source = tmp_path / "k.ptx"
    source.write_text(text)
    architecture = parse(text).target
    command = [
        toolchain.find().ptxas,
        "-c",
        f"-arch={architecture}",
        "-o",
        tmp_path / "k.o",
        source,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_foreign_letters_in_comments() -> None:
    text = (
        "// na\u00efve\n.version 8.5\n.target sm_80\n.entry k { /* \u4e2d */ ret; // \U0001f600\n}"
    )
    module = parse(text)
    assert unparse(module) == text
    assert [each.opcode for each in instructions(module)] == ["ret"]
    assert toolchain.assemble(toolchain.find(), text, "sm_80", "k").cubin


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("a.cu", "a.cu"),
        (r"n\303\251/\303\274 b.cu", "n\u00e9/\u00fc b.cu"),
        (r"a\"b\\c\8.cu", 'a"b\\c8.cu'),
        ("\u00fc.cu", "\u00fc.cu"),
    ],
)
def test_paths(written: str, path: str) -> None:
    module = parse(f'.version 8.5\n.target sm_80\n.address_size 64\n.file 1 "{written}"\n')
    assert module.files == {1: path}


def test_corpus_covers_what_it_should() -> None:
    modules = [parse(read(path), path.name) for path in CORPUS]
    assert {module.target for module in modules} <= TARGETS
    opcodes = {instruction.opcode for module in modules for instruction in instructions(module)}
    assert opcodes >= OPCODES


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


def test_an_opcode_in_pieces() -> None:
    """As ptxas takes it."""
    text = (
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a)\n{\n"
        "\t.reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .pred %p<2>;\n\tld .param .u64 %rd1, [a];\n"
        "\t@!%p1 ld /* at once */ .global\n\t\t.u32 %r1, [%rd1+4];\n\tret ;\n}\n"
    )
    module = parse(text)
    first, second, last = instructions(module)
    assert [one.tokens for one in (first, second, last)] == [
        ("ld", "param", "u64"), ("ld", "global", "u32"), ("ret",),
    ]  # fmt: skip
    assert len(second.operands) == 2 and second.guard is not None and second.guard.negated
    assert unparse(module) == text


def test_vector_loads() -> None:
    loads = [i for i in instructions(corpus_module("structs")) if "v4" in i.tokens]
    assert loads
    for load in loads:
        (vector,) = [operand for operand in load.operands if isinstance(operand, Vector)]
        assert len(vector.items) == 4
