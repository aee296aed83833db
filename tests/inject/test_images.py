"""The PTX behind loaded images."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuwatch.errors import UserError
from gpuwatch.inject import ptx_caches
from gpuwatch.inject.cubin import cubin_signatures, kernels_of, ptx_signatures
from gpuwatch.inject.images import ImagePtx, image_ptx
from gpuwatch.inject.ptx_caches import PtxCaches
from gpuwatch.launch.binary import Elf
from gpuwatch.ptx import parse
from gpuwatch.toolchain import assemble, find

SOURCE = """
struct Wide { char c[3]; double d; };
__device__ int table[4];
__device__ __noinline__ int helper(int x) { return x * table[x & 3] + 7; }
__global__ void scale(float *p, float by, Wide w, char c) { p[helper(c)] *= by + w.d; }
extern "C" __global__ void plain() { table[threadIdx.x] = 3; }
"""
KERNELS = {"_Z5scalePff4Widec", "plain"}
MODES = ("default", "size", "speed", "balance", "none")
TARGETS = ("75", "90", "90a", "100f", "120")
NOWHERE = {"HOME": "/nowhere", "TORCHINDUCTOR_CACHE_DIR": "/nowhere"}


def nvcc(output: Path, *arguments: str | Path, text: str = SOURCE) -> Path:
    source = output.with_name("images.cu")
    source.write_text(text)
    command = [find().nvcc, *arguments, "-o", output, source]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("images")


@pytest.fixture(scope="module")
def fatbin(folder: Path) -> bytes:
    """Machine code for one target and PTX for several."""
    codes = [f"-gencode=arch=compute_{one},code=compute_{one}" for one in TARGETS]
    code = "-gencode=arch=compute_90,code=sm_90"
    return nvcc(folder / "many.fatbin", "-fatbin", code, *codes).read_bytes()


@pytest.fixture(scope="module")
def ptx(folder: Path) -> str:
    return nvcc(folder / "images.ptx", "-ptx", "-arch=compute_75").read_text()


def cubin_of(ptx: str, arch: str = "sm_90") -> bytes:
    return assemble(find(), ptx, arch, parse(ptx).entries()[0].name).cubin


@pytest.fixture(scope="module")
def cubin(ptx: str) -> bytes:
    return cubin_of(ptx)


@pytest.fixture
def look(tmp_path: Path) -> Callable[..., ImagePtx]:
    """image_ptx of a content, stored in a file of its own."""

    def found(
        kind: str, content: bytes, arch: str = "sm_90", caches: PtxCaches | None = None
    ) -> ImagePtx:
        path = tmp_path / f"1.{kind}"
        path.write_bytes(content)
        return image_ptx(kind, path, arch, caches or PtxCaches(NOWHERE))

    return found


Look = Callable[..., ImagePtx]


def kernels(text: str) -> set[str]:
    return {one.name for one in parse(text).entries()}


def only_ptx(fatbin: bytes, header: bool) -> bytes:
    """The entries with PTX, as the injected library stores them."""
    magic, version, size, _ = struct.unpack_from("<IHHQ", fatbin)
    at, kept = size, b""
    while at < len(fatbin):
        kind, _, head, padded = struct.unpack_from("<HHIQ", fatbin, at)
        kept += fatbin[at : at + head + padded] if kind == 1 else b""
        at += head + padded
    return (struct.pack("<IHHQ", magic, version, size, len(kept)) if header else b"") + kept


@pytest.mark.parametrize("mode", MODES)
def test_fat_binaries_of_all_modes(folder: Path, look: Look, mode: str) -> None:
    path = nvcc(folder / f"{mode}.fatbin", "-fatbin", "-arch=sm_90", f"-compress-mode={mode}")
    found = look("fatbin", path.read_bytes())
    assert (found.origin, found.target, found.why) == ("in the program", "sm_90", "")
    assert kernels(found.text) == KERNELS
    assemble(find(), found.text, found.target, "plain")


@pytest.mark.parametrize(
    ("arch", "chosen", "target"),
    [
        ("sm_75", "sm_75", "sm_75"),
        ("sm_89", "sm_75", "sm_89"),
        ("sm_90", "sm_90a", "sm_90a"),
        ("sm_100", "sm_100f", "sm_100f"),
        ("sm_103", "sm_100f", "sm_103f"),
        ("sm_110", "sm_90", "sm_110"),
        ("sm_121", "sm_120", "sm_121"),
    ],
)
def test_the_fitting_target_is_taken(
    look: Look, fatbin: bytes, arch: str, chosen: str, target: str
) -> None:
    for content in (fatbin, only_ptx(fatbin, True), only_ptx(fatbin, False)):
        found = look("fatbin", content, arch)
        assert f"\n.target {chosen}\n" in found.text
        assert found.target == target
    assemble(find(), found.text, found.target, "plain")


def test_why_a_fat_binary_has_none(folder: Path, look: Look, fatbin: bytes) -> None:
    found = look("fatbin", fatbin, "sm_70")
    assert found == ImagePtx(why="PTX only for sm_90a, sm_100f, sm_75 and above")
    assert found.origin == "machine code only"
    newer = nvcc(folder / "newer.fatbin", "-fatbin", "-arch=compute_120").read_bytes()
    assert look("fatbin", newer).why == "PTX only for sm_120 and above"
    code = "-gencode=arch=compute_90,code=sm_90"
    assert look("fatbin", nvcc(folder / "code.fatbin", "-fatbin", code).read_bytes()) == ImagePtx(
        why="machine code only"
    )
    assert look("fatbin", fatbin[:16]).why == "machine code only"


def test_fat_binaries_of_a_linked_program_are_one(folder: Path, look: Look) -> None:
    first = nvcc(folder / "a.fatbin", "-fatbin", "-rdc=true", "-arch=sm_90").read_bytes()
    other = "extern __device__ int table[4];\n__global__ void other() { table[0] = 1; }"
    second = nvcc(folder / "b.fatbin", "-fatbin", "-rdc=true", "-arch=sm_90", text=other)
    found = look("fatbin", first + second.read_bytes())
    assert kernels(found.text) == KERNELS | {"_Z5otherv"}
    assemble(find(), found.text, found.target, "plain")


def test_the_section_of_a_program(folder: Path, look: Look) -> None:
    path = nvcc(folder / "images.o", "-c", "-arch=sm_90")
    section = Elf(path.read_bytes(), path.name).section(".nv_fatbin")
    assert kernels(look("fatbin", section).text) == KERNELS


def test_texts(look: Look, ptx: str) -> None:
    assert look("ptx", ptx.encode()) == ImagePtx(ptx, "PTX text", "sm_90")
    heading = "\n\n \n//\n// Generated by LLVM NVPTX Back-End\n//\n"
    text = heading + ptx.replace(".target sm_75", ".target sm_90a")
    found = look("ptx", text.encode() + b"\0\0")
    assert found == ImagePtx(text, "compiled at run time", "sm_90a")
    assemble(find(), found.text, found.target, "plain")
    for other in (b"", b"\0", b"BC\xc0\xde", b".version 8.0\n", b"no text"):
        assert look("ptx", other) == ImagePtx(why="what was loaded is no PTX text, or damaged")


def test_files(look: Look, folder: Path, ptx: str, fatbin: bytes, cubin: bytes) -> None:
    path = folder / "loaded"
    caches = PtxCaches(NOWHERE | {"PWD": str(folder)})
    for content, origin in ((ptx.encode(), "PTX text"), (fatbin, "in the program")):
        path.write_bytes(content)
        for name in (str(path), "loaded"):
            found = look("file", name.encode(), caches=caches)
            assert (found.origin, kernels(found.text)) == (origin, KERNELS)
    path.write_bytes(cubin)
    assert look("file", str(path).encode()).why == "machine code only"
    for name in (b"/no/such/file", b"", b"/dev/null", b"a\0b", b"x" * 5000, b"\xff"):
        assert look("file", name).why


def test_what_cannot_be_looked_at(tmp_path: Path, look: Look) -> None:
    missing = image_ptx("ptx", tmp_path / "none", "sm_90", PtxCaches(NOWHERE))
    assert missing.why == "what was loaded cannot be read: No such file or directory"
    assert "kind" in look("unknown", b"?").why


def triton_entry(folder: Path, cubin: bytes, ptx: str) -> Path:
    """A kernel as Triton keeps it; its cubin."""
    entry = folder / "EVJ4XR2" / "kernel.cubin"
    entry.parent.mkdir(parents=True, exist_ok=True)
    entry.with_suffix(".ptx").write_text(ptx)
    entry.with_suffix(".json").write_text("{}")
    entry.write_bytes(cubin)
    return entry


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"TRITON_CACHE_DIR": "{}/t"}, "t"),
        ({"TRITON_CACHE_DIR": "t", "PWD": "{}"}, "t"),
        ({"HOME": "{}"}, ".triton/cache"),
        ({"HOME": "/nowhere", "TRITON_HOME": "{}"}, ".triton/cache"),
        ({"HOME": "/nowhere", "TORCHINDUCTOR_CACHE_DIR": "{}/i"}, "i/triton/0"),
        ({"HOME": "/nowhere", "TMPDIR": "{}", "USER": "a/b"}, "torchinductor_a_b/triton/1"),
    ],
)
def test_tritons_folders(
    tmp_path: Path, look: Look, cubin: bytes, ptx: str, variables: dict[str, str], place: str
) -> None:
    caches = PtxCaches({name: value.format(tmp_path) for name, value in variables.items()})
    assert look("cubin", cubin, caches=caches).why == "machine code only"
    triton_entry(tmp_path / place, cubin, ptx)
    assert look("cubin", cubin, caches=caches) == ImagePtx(ptx, "Triton's cache", "sm_90")
    (tmp_path / "k.cubin").write_bytes(cubin)
    assert look("cubin", cubin[:-1] + b"?", caches=caches).why == "machine code only"
    assert look("cubin", cubin + b"?", caches=caches).why == "machine code only"


def test_files_of_a_cache_come_and_go(tmp_path: Path, look: Look, cubin: bytes, ptx: str) -> None:
    caches = PtxCaches(NOWHERE | {"TRITON_CACHE_DIR": str(tmp_path)})
    first = triton_entry(tmp_path / "x", cubin, ptx)
    second = triton_entry(tmp_path / "y", cubin, ptx)
    assert look("cubin", cubin, caches=caches).text
    first.with_suffix(".ptx").unlink()
    assert look("cubin", cubin, caches=caches).text
    second.unlink()
    assert look("cubin", cubin, caches=caches).why == "machine code only"
    first.unlink()
    first.mkdir()
    assert look("cubin", cubin, caches=caches).why == "machine code only"


def test_tritons_files_loaded_by_their_path(
    tmp_path: Path, look: Look, cubin: bytes, ptx: str
) -> None:
    path = triton_entry(tmp_path, cubin, ptx)
    assert look("file", str(path).encode()) == ImagePtx(ptx, "Triton's cache", "sm_90")
    path.with_suffix(".json").unlink()
    assert look("file", str(path).encode()).why == "machine code only"


def test_folders_are_listed_when_they_have_changed(
    tmp_path: Path, cubin: bytes, ptx: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(20):
        entry = triton_entry(tmp_path / f"c{n}", cubin + bytes(n), ptx)
        for one in (entry.parent, entry.parent.parent):
            os.utime(one, (1e9, 1e9))
    os.utime(tmp_path, (1e9, 1e9))
    listed: list[str] = []
    scandir = os.scandir

    def counting(path: str) -> object:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(ptx_caches.os, "scandir", counting)
    caches = PtxCaches(NOWHERE | {"TRITON_CACHE_DIR": str(tmp_path)})
    now = time.time()
    for n in range(20):
        assert caches.find(cubin + bytes(n), now) == (ptx, "Triton's cache")
    assert len(listed) == 1 + 20 * 2
    assert caches.find(b"not there", now) is None
    triton_entry(tmp_path / "new", b"new", ptx)
    del listed[:]
    assert caches.find(b"new", now) == (ptx, "Triton's cache")
    assert len(listed) == 3
    monkeypatch.setattr(ptx_caches, "_SETTLED", 0.0)
    caches.find(b"not there", now)
    del listed[:]
    assert caches.find(b"not there", now) is None
    assert not listed


def test_xlas_dumps(tmp_path: Path, look: Look, cubin: bytes, ptx: str) -> None:
    dumps = tmp_path / "dump"
    flags = f"--xla_gpu_x=1 --xla_dump_to=/other --xla_dump_to={dumps} --xla_y"
    caches = PtxCaches(NOWHERE | {"XLA_FLAGS": flags})
    assert look("cubin", cubin, caches=caches).why == "machine code only"
    dumps.mkdir()
    other_block = ptx.replace(".param .u8", ".param .u16")
    assert ptx_signatures(parse(other_block)) != ptx_signatures(parse(ptx))
    (dumps / "other_block.ptx").write_text(other_block)
    (dumps / "fewer.ptx").write_text(ptx[: ptx.index(".visible .entry plain")])
    (dumps / "more.ptx").write_text(ptx + ".entry more() { ret; }")
    (dumps / "unreadable.ptx").write_bytes(b"\xff{{")
    (dumps / "folder.ptx").mkdir()
    assert look("cubin", cubin, caches=caches).why == "machine code only"
    now = time.time()
    for name, age in (("older", 50), ("newer", 20), ("later", -500)):
        path = dumps / f"{name}.ptx"
        path.write_text(f"// {name}\n{ptx}")
        os.utime(path, (now - age, now - age))
    found = look("cubin", cubin, caches=caches)
    assert found == ImagePtx(f"// newer\n{ptx}", "XLA's dump", "sm_90")
    (dumps / "newer.ptx").write_text("")
    (dumps / "older.ptx").unlink()
    assert look("cubin", cubin, caches=caches).text.startswith("// later")
    for damaged in (cubin[:40], cubin[:40] + b"\xff" * 8 + cubin[48:]):
        assert look("cubin", damaged, caches=caches).why == "machine code only"
        with pytest.raises(UserError, match="the cubin is damaged"):
            kernels_of(damaged)


def test_xlas_flags_in_a_file(tmp_path: Path, look: Look, cubin: bytes, ptx: str) -> None:
    (tmp_path / "flags").write_text('--xla_x\n--xla_dump_to="a dump"\n')
    (tmp_path / "a dump").mkdir()
    (tmp_path / "a dump" / "module.ptx").write_text(ptx)
    caches = PtxCaches(NOWHERE | {"XLA_FLAGS": "flags", "PWD": str(tmp_path)})
    assert look("cubin", cubin, caches=caches).origin == "XLA's dump"
    assert PtxCaches({"XLA_FLAGS": "no_such_file"}).find(cubin, 0.0) is None


@pytest.mark.parametrize("arch", ["75", "80", "86", "89", "90", "100", "103", "110", "120", "121"])
def test_kernels_of_cubins(ptx: str, arch: str) -> None:
    content = cubin_of(ptx, f"sm_{arch}")
    assert set(kernels_of(content)) == KERNELS
    assert cubin_signatures(content) == ptx_signatures(parse(ptx))
    assert cubin_signatures(content)["plain"] == ()


def test_parameters_of_more_than_16_kilobytes(tmp_path: Path) -> None:
    source = "struct S { int a[5000]; };\n__global__ void big(int *p, S s, char c) { *p = s.a[c]; }"
    text = nvcc(tmp_path / "big.ptx", "-ptx", "-arch=sm_90", text=source).read_text()
    (parameters,) = cubin_signatures(cubin_of(text)).values()
    assert parameters == ((0, 8), (8, 20000), (20008, 1))
    assert ptx_signatures(parse(text)) == {"_Z3bigPi1Sc": parameters}


@pytest.fixture(scope="module")
def samples(folder: Path, cubin: bytes, ptx: str) -> dict[str, list[bytes]]:
    """Small images by their kind."""
    kernel = "__global__ void k(int *p) { *p = 1; }"
    packed = [
        nvcc(
            folder / "k.fatbin",
            "-fatbin",
            "-arch=compute_75",
            f"-compress-mode={mode}",
            text=kernel,
        ).read_bytes()
        for mode in ("default", "speed", "none")
    ]
    return {
        "fatbin": [*packed, only_ptx(packed[0], False), packed[0] + packed[1]],
        "cubin": [cubin],
        "ptx": [ptx.encode()],
    }


@settings(
    max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(data=st.data())
def test_damaged_images(
    samples: dict[str, list[bytes]], folder: Path, ptx: str, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(sorted(samples)))
    content = bytearray(data.draw(st.sampled_from(samples[kind])))
    bytes_of_headers = st.integers(0, 160)
    anywhere = st.integers(0, len(content) - 1)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(bytes_of_headers | anywhere)] = data.draw(
            st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
        )
    cut = data.draw(st.none() | anywhere)
    (folder / "module.ptx").write_text(ptx)
    caches = PtxCaches(NOWHERE | {"XLA_FLAGS": f"--xla_dump_to={folder}"})
    path = folder / "damaged"
    path.write_bytes(content[:cut])
    by_path = folder / "damaged.file"
    by_path.write_text(str(path))
    for found in (
        image_ptx(kind, path, "sm_90", caches),
        image_ptx("file", by_path, "sm_90", caches),
    ):
        assert bool(found.text) != bool(found.why)
        assert bool(found.text) == bool(re.fullmatch("sm_90a?f?", found.target))


@given(st.binary(max_size=300), st.sampled_from(["fatbin", "cubin", "ptx", "file", "?"]))
def test_any_bytes(content: bytes, kind: str) -> None:
    path = Path(os.environ["GPUWATCH_CACHE_DIR"]) / "any"
    path.parent.mkdir(parents=True, exist_ok=True)
    for head in (b"", b"\x7fELF\x02\x01", struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 250)):
        path.write_bytes(head + content)
        assert image_ptx(kind, path, "sm_90", PtxCaches(NOWHERE)).why
