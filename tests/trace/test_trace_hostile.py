"""Traces made to harm who opens them: texts that steer a terminal, pipes in place of files, times
and SMs that cannot be. What is wrong is told; nothing hangs, and nothing else is raised."""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trace_support import BLOCK_SCHED, kernel_facts, launched, write_trace

from gpuwatch.errors import UserError
from gpuwatch.trace import Trace, records_of
from gpuwatch.trace.callback import run_callback
from gpuwatch.trace.export import FORMATS, export
from gpuwatch.trace.values import Values, harmless

STEERING = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x7f"
_LAX = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def timed_trace(folder: Path, start=1000, elapsed=100, sm=0) -> Trace:
    """Twelve warps; the first has these values."""
    launch = launched(kernel_facts([BLOCK_SCHED]), np.random.default_rng(1), full=True)
    rows = launch.buffers[0].view("<u8,<u4,<u4")
    rows["f0"], rows["f1"], rows["f2"] = 1000, 100, np.arange(12) % 5
    rows[0] = start, elapsed, sm
    return Trace(write_trace(folder / "t", [launch]))


@given(st.text())
def test_harmless_texts_are_as_long_and_steer_nothing(text):
    lines, line = harmless(text, lines=True), harmless(text)
    assert len(lines) == len(line) == len(text)
    assert not any(ord(one) < 32 or 127 <= ord(one) < 160 for one in line)
    kept = [one for one in text if one in "\n\t"]
    assert [one for one in lines if ord(one) < 32 or 127 <= ord(one) < 160] == kept


def test_texts_of_every_kind_are_harmless():
    values = Values(
        {"t": STEERING, "many": [STEERING], "rows": [[STEERING]], "pairs": [[STEERING, 1]]}, "here"
    )
    mark = harmless(STEERING)
    assert "\x1b" not in mark and "\r" not in mark and mark.startswith("\ufffd]0;owned")
    assert values.text("t") == mark
    assert values.texts("many") == (mark,)
    assert values.rows("rows", 1) == [(mark,)]
    assert values.pairs("pairs") == ((mark, 1),)
    assert Values({"t": "a\n\tb\x1b"}, "here").text("t", lines=True) == "a\n\tb\ufffd"


def test_names_of_a_kernel_and_of_its_device_steer_no_terminal(tmp_path):
    trace = timed_trace(tmp_path)
    (path,) = trace.path.glob("kernel/*/kernel.info")
    text = path.read_text().replace("copy(int *)", r"copy\u001b[2J").replace("A GPU", r"A\u0007")
    path.write_text(text)
    facts = Trace(trace.path).launch(0).kernel
    assert (facts.name, facts.device.name) == ("copy\ufffd[2J", "A\ufffd")


def test_a_kernel_s_folder_with_an_unprintable_name_is_refused(tmp_path):
    trace = timed_trace(tmp_path)
    (folder,) = (trace.path / "kernel").iterdir()
    folder.rename(folder.with_name("0_\x1b[2J"))
    with pytest.raises(UserError) as caught:
        Trace(trace.path)
    assert caught.value.message.isprintable() and "0_\\x1b[2J" in caught.value.message


def test_what_a_callback_prints_steers_no_terminal(tmp_path):
    trace = timed_trace(tmp_path)
    callback = tmp_path / "callback.py"
    callback.write_text("print('one\\x1b[2J\\n\\ttwo')")
    done = run_callback(callback, trace.results[0], trace.launch(0).kernel)
    assert done.output == "one\ufffd[2J\n\ttwo\n"


@pytest.mark.parametrize("name", ["result/0.1.bin", "kernel/0_x/kernel.info"])
def test_a_pipe_in_place_of_a_file_is_refused_at_once(tmp_path, name):
    trace = timed_trace(tmp_path)
    pipe = trace.path / name
    pipe.parent.mkdir(exist_ok=True)
    os.mkfifo(pipe)
    with pytest.raises(UserError, match="is no plain file"):
        Trace(trace.path).launch(1)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"start": 1 << 63}, "ran at a time that cannot be"),
        ({"start": (1 << 63) - 1}, "ran at a time that cannot be"),
        ({"sm": 1 << 31}, "names an SM that no GPU has"),
        ({"sm": 1 << 20}, "names an SM that no GPU has"),
    ],
)
@pytest.mark.parametrize("form", ["perfetto", "chrome"])
def test_times_and_sms_that_cannot_be_have_no_timeline(tmp_path, values, words, form):
    trace = timed_trace(tmp_path, **values)
    with pytest.raises(UserError, match=words) as caught:
        export(trace, [0], form, tmp_path / "out")
    assert caught.value.message.startswith(str(trace.results[0]))
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


@_LAX
@given(data=st.data(), form=st.sampled_from(FORMATS))
def test_any_altered_result_is_exported_or_refused(tmp_path_factory, data, form):
    folder = tmp_path_factory.mktemp("altered")
    trace = timed_trace(folder)
    (path,) = trace.results
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        new = data.draw(st.one_of(st.binary(min_size=1, max_size=8), st.just(b"\xff" * 8)))
        content[at : at + len(new)] = new
    path.write_bytes(bytes(content))
    with contextlib.suppress(UserError), np.errstate(all="ignore"):
        (done,) = export(Trace(trace.path), [0], form, folder / "out")
        assert done.path.stat().st_size > 0


_PROBE = """[probe.both]
level = "warp"
pos = "kernel"
before = "SAVE"
[map.m]
level = "warp"
type = "array"
size = 16
cap = 1
[map.m.regs]
start = ["u64", "None"]
elapsed = ["u32", "None"]
cuid = ["u32", "None"]
"""
_WORDS = (
    "0",
    "-1",
    "17",
    '"8"',
    '"dynamic"',
    "[]",
    "[[]]",
    "{}",
    "true",
    "nan",
    "1" * 30,
    '"thread"',
)


@settings(_LAX, max_examples=300)
@given(data=st.data())
def test_any_altered_trace_of_another_tool_is_read_or_refused(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "result").mkdir()
    lines = _PROBE.split("\n")
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(lines) - 1))
        key, equals, _ = lines[at].partition(" = ")
        new = data.draw(st.sampled_from(_WORDS))
        lines[at] = f"{key} = {new}" if equals else new
    (folder / "probe.toml").write_text("\n".join(lines))
    content = bytearray(struct.pack("<8iIIQ", 2, 1, 1, 64, 1, 1, 0, 1, 16, 32, 48))
    content += b"".join(struct.pack("<QII", 100 + row, 10, row % 2) for row in range(4))
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(content) - 1))
        new = data.draw(st.binary(min_size=1, max_size=8))
        content[at : at + len(new)] = new
    cut = data.draw(st.one_of(st.none(), st.integers(0, len(content))))
    (folder / "result" / "0.297500.bin").write_bytes(bytes(content[:cut]))
    with contextlib.suppress(UserError):
        found = records_of(Trace(folder).launch(0))
        assert all(len(decoded) >= 0 for decoded in found.maps.values())
