"""Traces that were cut off or altered: a message that says what and where, nothing else."""

from __future__ import annotations

import contextlib
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_support import BLOCK_SCHED, WARP_DURATION, kernel_facts, launched, write_trace

from gpuwatch.errors import UserError
from gpuwatch.probe.model import Field, Map
from gpuwatch.trace import Trace, is_trace, records_of

DYNAMIC = Map("grown", "warp", "array", 8, 1, (Field("value", "u64"),), dynamic=True)
_LAX = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture
def trace(tmp_path) -> Path:
    facts = kernel_facts([BLOCK_SCHED, WARP_DURATION, DYNAMIC])
    return write_trace(tmp_path / "t", [launched(facts, np.random.default_rng(1))])


def read(folder: Path) -> None:
    records_of(Trace(folder).launch(0))


def refusal(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        read(folder)
    assert caught.value.hint
    return caught.value.message


def overwrite(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


@_LAX
@given(data=st.data())
def test_any_altered_result_is_read_or_refused(trace, data):
    path = Trace(trace).results[0]
    original = path.read_bytes()
    content = bytearray(original)
    front = data.draw(st.booleans(), "in front")
    for _ in range(data.draw(st.integers(1, 4))):
        last = min(1200, len(content) - 1) if front else len(content) - 1
        at = data.draw(st.integers(0, last))
        new = data.draw(st.binary(min_size=1, max_size=8))
        content[at : at + len(new)] = new
    cut = data.draw(st.one_of(st.none(), st.integers(0, len(content))))
    path.write_bytes(bytes(content[:cut]))
    try:
        with contextlib.suppress(UserError):
            read(trace)
    finally:
        path.write_bytes(original)


@_LAX
@given(data=st.data())
def test_any_altered_kernel_info_is_read_or_refused(trace, data):
    (path,) = trace.glob("kernel/*/kernel.info")
    original = path.read_text()
    words = ("0", "-1", "99999999999", "4294967296", "true", '"x"', "[]", "{}", "nan", "3.5", "'")
    lines = original.split("\n")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(1, len(lines) - 1))
        key, equals, _ = lines[at].partition(" = ")
        new = data.draw(st.sampled_from(words))
        lines[at] = f"{key} = {new}" if equals and data.draw(st.booleans()) else new
    path.write_text("\n".join(lines))
    try:
        with contextlib.suppress(UserError):
            read(trace)
    finally:
        path.write_text(original)


@pytest.mark.parametrize(
    ("offset", "content", "words"),
    [
        (0, struct.pack("<i", -1), "negative number in the header"),
        (0, struct.pack("<i", 4), "a launch of 4x2x1 x 64x1x1, the kernel's is 3x2x1"),
        (28, struct.pack("<i", 10**9), "byte 28: 1000000000 maps do not fit"),
        (28, struct.pack("<i", -3), "byte 28: -3 maps"),
        (32, struct.pack("<I", 12), "byte 32: a slot of map block_sched takes 12 bytes, not 16"),
        (40, struct.pack("<Q", 1 << 63), "byte 40: map 0 would begin at byte 9,223,372"),
        (40, struct.pack("<Q", 8), "byte 40: map 0 would begin at byte 8"),
        (88, struct.pack("<Q", 1 << 40), "byte 88: a text of 1,099,511,627,776 bytes"),
        (96, b"[", "not JSON"),
    ],
)
def test_what_is_wrong_and_where(trace, offset, content, words):
    overwrite(Trace(trace).results[0], offset, content)
    assert words in refusal(trace)


def test_a_truncated_file_says_which_map_is_cut(trace):
    path = Trace(trace).results[0]
    content = path.read_bytes()
    _, _, second = struct.unpack_from("<IIQ", content, 48)
    path.write_bytes(content[: second + 100])
    assert f"map 2 would begin at byte {second + 384:,}, the file has" in refusal(trace)
    path.write_bytes(content[:-1])
    assert "map grown would end at byte" in refusal(trace)
    path.write_bytes(content[:10])
    assert "the header takes 32 bytes, the file has 10" in refusal(trace)
    path.write_bytes(b"")
    assert "the file has 0" in refusal(trace)


def test_offsets_that_do_not_ascend_are_refused(trace):
    path = Trace(trace).results[0]
    entries = Trace(trace).launch(0).result.entries
    overwrite(path, entries[2].offsets_at + 8, struct.pack("<Q", 1 << 60))
    assert "the offsets of map grown do not ascend" in refusal(trace)


def test_a_launch_too_large_to_hold_is_refused(tmp_path):
    facts = kernel_facts([Map("m", "kernel", "reduce", 8, 1, (Field("sum", "u64"),))])
    folder = write_trace(tmp_path / "t", [launched(facts, np.random.default_rng(1))])
    most = struct.pack("<3i", *[2**31 - 1] * 3)
    overwrite(Trace(folder).results[0], 0, most)
    (path,) = folder.glob("kernel/*/kernel.info")
    shape = ", ".join([str(2**31 - 1)] * 3)
    path.write_text(path.read_text().replace("grid = [3, 2, 1]", f"grid = [{shape}]"))
    assert "is too large" in refusal(folder)


def test_names_are_names_and_nothing_more(trace):
    """A kernel's folder is looked up among those that are there, never opened as a path."""
    path = Trace(trace).results[0]
    content = path.read_bytes()
    name = next((trace / "kernel").iterdir()).name.encode()
    evil = b"../../../../etc/passwd".ljust(len(name), b"x")
    path.write_bytes(content.replace(name, evil))
    assert "it is of kernel '../../../../etc/passwdx" in refusal(trace)


def test_nothing_in_a_trace_is_executed(trace):
    marker = trace / "executed"
    (trace / "read.py").write_text(f"open({str(marker)!r}, 'w')\n")
    read(trace)
    assert not marker.exists()


def test_what_is_no_trace(tmp_path, trace):
    assert is_trace(trace) and is_trace(Trace(trace).results[0])
    assert not is_trace(tmp_path) and not is_trace(tmp_path / "none")
    assert "is no trace" in refusal(tmp_path)
    assert "does not exist" in refusal(tmp_path / "none")
    shutil.rmtree(trace / "result")
    (trace / "result").mkdir()
    assert "has no results" in refusal(trace)


def test_another_version_is_told(trace):
    path = Trace(trace).results[0]
    path.write_bytes(path.read_bytes().replace(b'"version": 1', b'"version": 9'))
    assert "is of version 9, this gpuwatch reads 1" in refusal(trace)
