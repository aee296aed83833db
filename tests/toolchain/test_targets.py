"""GPUs and PTX that the toolkit at hand is too old or too new for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.errors import UserError
from gpuwatch.toolchain import assemble, compile_to_ptx, find
from gpuwatch.toolchain.targets import require_target

PTX = """\
.version {version}
.target {target}
.address_size 64
.visible .entry empty() {{ ret; }}
"""


def test_a_gpu_that_nvcc_makes_code_for() -> None:
    require_target(find(), "sm_90")


def test_a_gpu_that_nvcc_no_longer_makes_code_for(tmp_path: Path) -> None:
    source = tmp_path / "empty.cu"
    source.write_text("__global__ void empty() {}\n")
    with pytest.raises(UserError, match="no longer makes code for sm_70") as told:
        compile_to_ptx(find(), source, "sm_70")
    assert "older toolkit: --cuda-home" in told.value.hint


@pytest.mark.parametrize(
    ("version", "target", "arch", "words", "hint"),
    [
        ("99.0", "sm_90", "sm_90", "Unsupported .version 99.0", "a newer toolkit has made"),
        ("8.0", "sm_90", "sm_80", "refused the PTX for sm_80", "made for a newer GPU"),
        ("8.0", "sm_80", "sm_999", "refused the PTX for sm_999", "use a newer toolkit"),
        ("8.0", "sm_80", "sm_80", "", ""),
    ],
)
def test_ptx_that_is_too_new_says_what_mends_it(
    version: str, target: str, arch: str, words: str, hint: str
) -> None:
    text = PTX.format(version=version, target=target)
    if not words:
        assert assemble(find(), text, arch, "empty").registers > 0
        return
    with pytest.raises(UserError) as told:
        assemble(find(), text, arch, "empty")
    assert words in told.value.message and hint in told.value.hint
