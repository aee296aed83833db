"""Addresses taken out of captured memory and put back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.errors import UserError
from gpuwatch.launch.initial import initial_bytes
from gpuwatch.launch.memory import Piece, untie
from gpuwatch.ptx import parse

BASE = 0x1A5B_8000_0000
STEP = 0x1000


@st.composite
def memories(draw: st.DrawFn) -> tuple[bytes, list[Piece]]:
    """A parameter block and pieces whose words are data or addresses within pieces."""
    sizes = draw(st.lists(st.integers(1, 80), min_size=1, max_size=6))
    starts = [BASE + STEP * n for n in draw(st.permutations(range(len(sizes))))]
    addresses = st.sampled_from(list(zip(starts, sizes, strict=True))).flatmap(
        lambda place: st.integers(place[0], place[0] + place[1])
    )
    words = st.lists(st.one_of(addresses, st.integers(0, 1 << 32)), min_size=10, max_size=10)
    raw = [np.array(draw(words), np.uint64).view(np.uint8)[:size].copy() for size in sizes]
    pieces = [Piece("", start, content) for start, content in zip(starts, raw, strict=True)]
    return np.array(draw(words), np.uint64).tobytes(), pieces


@given(memories())
def test_what_is_taken_out_can_be_put_back(memory: tuple[bytes, list[Piece]]) -> None:
    block, pieces = memory
    untied = untie(block, pieces)
    originals = _kept(block, pieces)
    assert len(untied.buffers) == len(originals)
    addresses = [piece.address for piece in originals]
    for index, (buffer, piece) in enumerate(zip(untied.buffers, originals, strict=True)):
        pointers = untied.buffer_relocations.get(index)
        again = pointers.written(buffer, addresses) if pointers else buffer
        assert np.array_equal(again, piece.content)
        assert not _addresses(buffer, pieces)
    again = bytearray(untied.parameters)
    for place in untied.relocations:
        word = addresses[place.buffer] + place.addend
        again[place.offset : place.offset + 8] = word.to_bytes(8, "little")
    assert bytes(again) == block


def _addresses(content: np.ndarray, pieces: list[Piece]) -> list[int]:
    """The pieces that the words of `content` lead to, by plain search."""
    words = content[: content.size // 8 * 8].view(np.uint64).tolist()
    inside = [
        [n for n, p in enumerate(pieces) if p.address <= word <= p.address + p.content.size]
        for word in words
    ]
    return [n for found in inside for n in found]


def _kept(block: bytes, pieces: list[Piece]) -> list[Piece]:
    reached: set[int] = set()
    waiting = _addresses(np.frombuffer(block, np.uint8), pieces)
    while waiting:
        index = waiting.pop()
        if index not in reached:
            reached.add(index)
            waiting += _addresses(pieces[index].content, pieces)
    return [pieces[index] for index in sorted(reached)]


def test_the_address_of_a_variable_is_a_parameter_or_nothing() -> None:
    where = np.array([BASE + STEP + 4], np.uint64)
    variable = Piece("scale", BASE + STEP, np.zeros(8, np.uint8), is_set=False)
    untied = untie(where.tobytes(), [variable])
    (place,) = untied.symbol_relocations
    assert (place.offset, place.variable, place.addend) == (0, "scale", 4)
    assert (untied.buffers, untied.globals) == ([], {})
    holder = Piece("", BASE, where.view(np.uint8))
    with pytest.raises(UserError, match="holds the address of the variable scale"):
        untie(np.array([BASE], np.uint64).tobytes(), [holder, variable])


@pytest.mark.parametrize(
    ("declaration", "content"),
    [
        (".global .align 4 .u32 a = 5;", "05000000"),
        (".global .align 4 .s16 a[3] = {-1, 0x10};", "ffff10000000"),
        (".const .align 4 .f32 a[2] = {0f3F800000, 0fBF800000};", "0000803f000080bf"),
        (".global .align 8 .f64 a = 0d3FF0000000000000;", "000000000000f03f"),
        (".global .align 1 .b8 a[4] = {1, 2};", "01020000"),
        (".global .align 8 .u64 a[2] = {generic(b), 7};", "00" * 8 + "07" + "00" * 7),
        (".global .align 4 .u32 a[3] = {(1+2), WARP_SZ, 0100};", "030000002000000040000000"),
        (".global .align 4 .f32 a[2] = {1.5};", "0000c03f00000000"),
        (
            ".global .samplerref a = { addr_mode_0 = clamp_to_border, filter_mode = linear };",
            "00" * 8,
        ),
        (".global .align 8 .v2 .u32 a[2] = {{1, 2}};", "0100000002000000" + "00" * 8),
    ],
)
def test_first_contents_of_variables(declaration: str, content: str) -> None:
    header = ".version 8.0\n.target sm_80\n.address_size 64\n.global .align 4 .u32 b;\n"
    module = parse(header + declaration + "\n", "variables.ptx")
    assert initial_bytes(module.variables[1]).hex() == content
