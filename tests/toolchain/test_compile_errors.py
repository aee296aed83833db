"""Compile and assemble errors as a user sees them."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path

import pytest

from gpuwatch.errors import UserError
from gpuwatch.toolchain import assemble, compile_to_ptx, find


def test_a_compile_error_has_its_place_and_the_compilers_words(tmp_path: Path) -> None:
    source = tmp_path / "broken.cu"
    source.write_text("__global__ void k(int *p) {\n  p[0] = undeclared;\n}\nint main() {}\n")
    with pytest.raises(UserError) as caught:
        compile_to_ptx(find(), source, "sm_86")
    error = caught.value
    assert error.status == 2
    assert error.at is not None
    assert (error.at.line, error.at.text) == (2, "  p[0] = undeclared;")
    assert error.at.column == 10
    assert "undeclared" in error.render()


def test_the_caret_is_right_behind_an_expanded_macro(tmp_path: Path) -> None:
    source = tmp_path / "macro.cu"
    source.write_text("__global__ void k(int *p) { p[0] = undeclared; }\nint main() {}\n")
    with pytest.raises(UserError) as caught:
        compile_to_ptx(find(), source, "sm_86")
    assert caught.value.at is not None
    assert caught.value.at.column == 36


def test_flags_that_leave_no_output_are_told(tmp_path: Path) -> None:
    source = tmp_path / "fine.cu"
    source.write_text("__global__ void k() {}\nint main() {}\n")
    with pytest.raises(UserError, match="wrote nothing"):
        compile_to_ptx(find(), source, "sm_86", ["--dryrun"])


def test_a_binary_ptx_file_is_told(tmp_path: Path) -> None:
    source = tmp_path / "binary.ptx"
    source.write_bytes(b"\x7fELF\xff\xfe\x00")
    with pytest.raises(UserError, match="is not PTX"):
        compile_to_ptx(find(), source, "sm_86")


def test_a_host_compile_error_is_told(tmp_path: Path) -> None:
    source = tmp_path / "text.cu"
    source.write_text("this is no program\n")
    with pytest.raises(UserError) as caught:
        compile_to_ptx(find(), source, "sm_86")
    assert caught.value.status == 2


def test_what_ptxas_refuses_is_told_with_its_line() -> None:
    ptx = (
        ".version 8.0\n.target sm_86\n.address_size 64\n"
        ".visible .entry k()\n{\n\tmov.u32 %r1, 0;\n\tret;\n}\n"
    )
    with pytest.raises(UserError) as caught:
        assemble(find(), ptx, "sm_86", "k")
    assert caught.value.at is not None
    assert caught.value.at.line == 6


def test_without_any_toolchain_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    finding = importlib.import_module("gpuwatch.toolchain.find")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr(finding, "_in_wheels", lambda: iter(()))
    with pytest.raises(UserError) as caught:
        find()
    assert "nvcc" in caught.value.message
    assert caught.value.hint


def test_a_changed_header_is_compiled_anew(tmp_path: Path) -> None:
    header = tmp_path / "value.h"
    source = tmp_path / "uses.cu"
    source.write_text('#include "value.h"\n__global__ void k(int *p) { *p = VALUE; }\n')
    header.write_text("#define VALUE 1111\n")
    first = compile_to_ptx(find(), source, "sm_86")
    header.write_text("#define VALUE 2222\n")
    second = compile_to_ptx(find(), source, "sm_86")
    assert "1111" in first
    assert "2222" in second


def test_a_folder_for_temporary_files_may_have_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "a,b c"
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    (tmp_path / "value.h").write_text("#define VALUE 3333\n")
    source = tmp_path / "uses.cu"
    source.write_text('#include "value.h"\n__global__ void k(int *p) { *p = VALUE; }\n')
    assert "3333" in compile_to_ptx(find(), source, "sm_86")


def test_a_misspelt_source_is_pointed_at_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "saxpy.cu").touch()
    for name in ("saxpy.cx", "saxpi.cu"):
        with pytest.raises(UserError, match="no such file") as caught:
            compile_to_ptx(find(), tmp_path / name, "sm_86")
        assert caught.value.hint == "did you mean saxpy.cu?"
