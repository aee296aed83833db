"""First contents of module variables, as ptxas 13.0 takes them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpuwatch import toolchain
from gpuwatch.device.sim.initial import initial_bytes as placed_bytes
from gpuwatch.errors import UserError
from gpuwatch.ptx import parse
from gpuwatch.ptx.initial import Address, initial_bytes, initial_values
from gpuwatch.ptx.model import Module
from gpuwatch.ptx.types import type_bytes

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
NUMBERS = {
    ".u32 v = 1": "01000000",
    ".u32 v[4] = {(1+2), WARP_SZ, 0100, -1}": "030000002000000040000000ffffffff",
    ".u32 v[3] = {1 << 3, 7 % 4, 0b101}": "080000000300000005000000",
    ".u32 v[2][3] = {{1, 2}, {3}}": "010000000200000003000000",
    ".u32 v = 1 ? 2 : 3": "02000000",
    ".u64 v = 0xFFFFFFFFFFFFFFFFU": "ffffffffffffffff",
    ".u8 v[3] = {0x141, 300, -2}": "412cfe",
    ".s8 v[2] = {-1, 128}": "ff80",
    ".b16 v[2] = {0x3c00, 1.5}": "003c0000",
    ".f32 v[4] = {1.5, -1.5, 0f3F800000, 0d3FF0000000000000}": "0000c03f0000c0bf0000803f0000803f",
    ".f64 v[2] = {1.5, 0d3FF0000000000000}": "000000000000f83f000000000000f03f",
    ".b32 v[3] = {1.5, 0fBF800000, 0d3FF0000000000000}": "0000c03f000080bf0000803f",
    ".b64 v[2] = {1.5, 0f3F800000}": "000000000000f83f0000803f00000000",
}
ADDRESSES = {
    "v[2] = {generic(a)+4, a}": [Address("a", 4), Address("a")],
    "v = a + 2*4": [Address("a", 8)],
    "v = 0xFF00(generic(a)+4)": [Address("a", 4, 0xFF00)],
}

REFUSED = {
    ".u8 v = 0(generic(a))": ("0 is no mask", "Invalid mask value"),
    ".u64 v = 0xFF0(generic(a))": ("0xFF0 is no mask", "Invalid mask value"),
    ".u32 v[2] = {1, 2, 3}": ("3 values for 2 elements", "Greater number of elements"),
    ".u32 v[2] = {1, 2, 1 + 2}": ("3 values for 2 elements", "Greater number of elements"),
}


def variable_module(declaration: str) -> Module:
    text = f"{HEAD}.visible .global .align 16 {declaration};\n.visible .entry k() {{ ret; }}\n"
    return parse(text, "initial.ptx")


def assembled(folder: Path, text: str) -> bytes:
    source, output = folder / "k.ptx", folder / "k.cubin"
    source.write_text(text)
    command = [toolchain.find().ptxas, "-arch=sm_90", "-o", output, source]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return output.read_bytes()


@pytest.mark.parametrize(("declaration", "content"), NUMBERS.items(), ids=NUMBERS)
def test_numbers_are_those_of_ptxas(declaration: str, content: str, tmp_path: Path) -> None:
    """The binary is that of the same bytes, written one by one."""
    module = variable_module(declaration)
    (variable,) = module.variables
    found = initial_bytes(variable, lambda _address: 0)
    assert found.hex() == content
    room = type_bytes(variable.type) * variable.count
    as_bytes = variable_module(f".b8 v[{room}] = {{{', '.join(map(str, found))}}}")
    assert assembled(tmp_path, module.text) == assembled(tmp_path, as_bytes.text)


@pytest.mark.parametrize(("declaration", "values"), ADDRESSES.items(), ids=ADDRESSES)
def test_addresses(declaration: str, values: list[Address]) -> None:
    (variable,) = variable_module(f".u64 {declaration}").variables
    assert initial_values(variable) == values


@pytest.mark.parametrize(("declaration", "messages"), REFUSED.items(), ids=REFUSED)
def test_what_ptxas_refuses(declaration: str, messages: tuple[str, str], tmp_path: Path) -> None:
    module = variable_module(declaration)
    ours, theirs = messages
    with pytest.raises(UserError, match=ours) as caught:
        initial_values(module.variables[0])
    assert caught.value.hint
    text = module.text.replace(HEAD, f"{HEAD}.visible .global .b32 a;\n")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        assembled(tmp_path, text)
    assert theirs in refused.value.stderr.decode()


@pytest.mark.parametrize("shift", range(0, 64, 8))
def test_masks_of_each_byte(shift: int, tmp_path: Path) -> None:
    module = variable_module(f".u8 v = {0xFF << shift:#x}(generic(a))")
    assert initial_values(module.variables[0]) == [Address("a", 0, 0xFF << shift)]
    assembled(tmp_path, module.text.replace(HEAD, f"{HEAD}.visible .global .b32 a;\n"))


def test_a_masked_address_is_moved_to_its_lowest_bit() -> None:
    assert Address("a", 4, 0xFF00).value(0x12340) == 0x23


def test_the_simulator_places_symbols_and_tells_of_those_without_a_place() -> None:
    module = variable_module(".u64 v[2] = {generic(a)+(1+3), 5}")
    content = placed_bytes(module, module.variables[0], {"a": 0x1000})
    assert content.hex() == "04100000000000000500000000000000"
    with pytest.raises(UserError, match="initial value of v: a has no address") as caught:
        placed_bytes(module, module.variables[0], {})
    assert caught.value.at is not None and caught.value.at.line == 4
    assert "--device cuda" in caught.value.hint
