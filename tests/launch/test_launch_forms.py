"""Forms of launches as they are kept, read again and told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpuwatch.errors import UserError
from gpuwatch.launch import (
    KernelSignature,
    LaunchForm,
    form_from_flags,
    form_key,
    launch_from_form,
    read_signature,
    remember,
    remembered,
)
from gpuwatch.launch.expressions import outer_parts
from gpuwatch.ptx import parse

FILL_PTX = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry _Z4fillPfi(.param .u64 p, .param .u32 n) { ret; }
"""


@pytest.fixture
def fill() -> KernelSignature:
    return read_signature(parse(FILL_PTX, "fill.ptx"), "_Z4fillPfi", "fill(float *, int)")


def test_a_remembered_form_is_the_whole_form(
    fill: KernelSignature, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is read again, a relative file stands where it stood."""
    data = np.arange(4, dtype=np.float32)
    data.tofile(tmp_path / "a.bin")
    monkeypatch.chdir(tmp_path)
    form = LaunchForm(
        grid="2*q",
        block="32",
        arguments=(("0", "f32[4]:file=a.bin"), ("1", "q")),
        cluster="2",
        cooperative=True,
        sizes={"q": 3},
    )
    key = form_key("fill.cu", fill.kernel)
    remember(key, form)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = remembered(key, fill)
    assert again is not None
    launch = launch_from_form(fill, again)
    assert (launch.grid, launch.cluster, launch.cooperative) == ((6, 1, 1), (2, 1, 1), True)
    assert np.array_equal(launch.buffers[0].view(np.float32), data)


def test_the_values_of_a_form_are_all_that_makes_the_launch() -> None:
    values = LaunchForm("q", "32", "16", (("n", "q"),), "2", True, {"q": 3}).values()
    assert values == {
        "grid": "q",
        "block": "32",
        "shared": "16",
        "arguments": {"n": "q"},
        "cluster": "2",
        "cooperative": True,
        "sizes": {"q": 3},
        "folder": str(Path.cwd()),
    }


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", [(0, "")]),
        ("a,b", [(0, "a"), (2, "b")]),
        ("cdiv(n, 2), f[1,2],", [(0, "cdiv(n, 2)"), (11, " f[1,2]"), (19, "")]),
        ("(1,2", [(0, "(1,2")]),
    ],
)
def test_parts_between_outer_commas(text: str, parts: list[tuple[int, str]]) -> None:
    assert list(outer_parts(text)) == parts


def test_a_bracket_that_stays_open_is_told_where_it_stands(fill: KernelSignature) -> None:
    form = form_from_flags("(1,2", "32", "0", ["0=null", "1=1"])
    with pytest.raises(UserError, match="no arithmetic") as caught:
        launch_from_form(fill, form)
    assert caught.value.at is not None
