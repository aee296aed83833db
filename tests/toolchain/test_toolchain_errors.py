"""What a user is told when the source or a named CUDA folder is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch import toolchain
from gpuwatch.errors import UserError
from gpuwatch.toolchain.compile import require_source


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        require_source(tmp_path / "absent.cu")
    assert "absent.cu: no such file" in caught.value.message
    assert caught.value.status == 2


def test_a_folder_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a file"):
        require_source(tmp_path)


def test_a_named_cuda_folder_must_hold_both_programs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no nvcc and no ptxas") as caught:
        toolchain.find(tmp_path)
    assert caught.value.status == 2
