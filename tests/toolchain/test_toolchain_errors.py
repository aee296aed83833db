"""What a user is told when the source or a named CUDA folder is not there."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from gpuwatch import toolchain
from gpuwatch.doctor import doctor
from gpuwatch.errors import UserError
from gpuwatch.toolchain.compile import require_source
from gpuwatch.toolchain.find import require_host_compiler


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        require_source(tmp_path / "absent.cu")
    assert "absent.cu: no such file" in caught.value.message
    assert caught.value.status == 2


def test_a_source_that_may_not_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "closed.cu"
    source.touch()
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (source, os.R_OK))
    with pytest.raises(UserError, match="may not be read") as caught:
        require_source(source)
    assert "chmod u+r" in caught.value.hint


def test_a_folder_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a file"):
        require_source(tmp_path)


def test_a_named_cuda_folder_must_hold_both_programs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no nvcc and no ptxas") as caught:
        toolchain.find(tmp_path)
    assert caught.value.status == 2


def test_gcc_alone_is_no_host_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gcc").write_text("#!/bin/sh\n")
    (tmp_path / "gcc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("NVCC_CCBIN", raising=False)
    output = io.StringIO()
    assert doctor(Console(file=output, width=200)) != 0
    (line,) = (line for line in output.getvalue().splitlines() if "host compiler:" in line)
    assert "g++" in line and not line.startswith("ok")
    monkeypatch.setenv("NVCC_CCBIN", "/opt/clang++")
    assert require_host_compiler() == "/opt/clang++"
