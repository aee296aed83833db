"""The generated read.py against the decoder, with numpy and without."""

from __future__ import annotations

import contextlib
import runpy
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_support import (
    BLOCK_SCHED,
    WARP_DURATION,
    kernel_facts,
    kernels,
    launched,
    nested_records,
    write_trace,
)

from gpuwatch.probe.model import Field, Map
from gpuwatch.trace import Trace, bucket_edges, records_of


def reader_of(folder, *, numpy=True):
    """The names of a trace's read.py; without numpy it finds none to import."""
    kept = sys.modules.get("numpy")
    if not numpy:
        sys.modules["numpy"] = None
    try:
        names = SimpleNamespace(**runpy.run_path(str(folder / "read.py"), run_name="read"))
    finally:
        sys.modules["numpy"] = kept
    assert (names.np is not None) == numpy
    return names


def bits(rows, types):
    """Rows so that NaNs compare: floats as their 32 bits."""
    return [
        tuple(
            int(np.array(value, np.float32).view(np.uint32)) if type_ == "f32" else value
            for value, type_ in zip(row, types, strict=True)
        )
        for row in rows
    ]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("numpy", [True, False])
@settings(max_examples=40, deadline=None)
@given(facts=kernels(), seed=st.integers(0, 2**32 - 1))
def test_it_reads_what_the_decoder_reads(tmp_path_factory, numpy, facts, seed):
    launch = launched(facts, np.random.default_rng(seed))
    folder = write_trace(tmp_path_factory.mktemp("trace") / "one", [launch])
    trace = Trace(folder)
    wanted = records_of(trace.launch(0))
    got = reader_of(folder, numpy=numpy).read(str(trace.results[0]))
    assert got.header[:3] == facts.grid and got.header[3:6] == facts.block
    assert got.facts["printed"] == "hello\n"
    assert got.facts["modelled"] is False
    for name, decoded in wanted.maps.items():
        found = got.maps[name]
        assert list(found.slots) == decoded.slots.tolist()
        assert list(found.index) == wanted.index[name].tolist()
        assert list(found.missing) == decoded.missing.tolist()
        assert found.dropped == decoded.dropped
        hist = decoded.map.type == "hist"
        types = ["u64"] if hist else [field.type for field in decoded.map.fields]
        rows = found.records.tolist() if numpy else found.records
        assert bits(rows, types) == bits(decoded.records.tolist(), types)


@pytest.mark.parametrize("numpy", [True, False])
def test_nested_records_are_those_of_the_article_s_reader(tmp_path, numpy):
    launch = launched(kernel_facts([BLOCK_SCHED]), np.random.default_rng(1), full=True)
    folder = write_trace(tmp_path / "t", [launch])
    path = Trace(folder).results[0]
    header, sections, records = reader_of(folder, numpy=numpy).parse(str(path))
    wanted_sections, wanted = nested_records(path, "QII")
    assert records["block_sched"] == wanted
    assert [tuple(section) for section in sections] == wanted_sections
    assert header.gridDimX == 3 and header.sharedMemBytes == 128 and header.numProbes == 1
    assert records["block_sched"][0][0][0].start == wanted[0][0][0][0]


def test_a_record_that_never_arrived_is_not_a_zero(tmp_path):
    launch = launched(kernel_facts([WARP_DURATION]), np.random.default_rng(2), full=True)
    launch.buffers[1].view(np.uint32)[5] = 0
    launch.buffers[0][5 * 32 : 6 * 32] = 0
    folder = write_trace(tmp_path / "t", [launch])
    _, _, records = reader_of(folder).parse(str(Trace(folder).results[0]))
    flat = records["warp_duration"]
    assert flat[2][1] == []
    assert sum(len(warp) for block in flat for warp in block) == 11


def test_edges_of_buckets(tmp_path):
    hist = Map("h", "kernel", "hist", 8, 4, (Field("value", "u32"),))
    maps = [hist, replace(hist, name="l", scale="linear", low=-3, step=5)]
    launch = launched(kernel_facts(maps), np.random.default_rng(3))
    folder = write_trace(tmp_path / "t", [launch])
    reader = reader_of(folder)
    for schema, map_ in zip(reader.MAPS, maps, strict=True):
        assert reader.bucket_edges(schema) == bucket_edges(map_).tolist()


def test_it_runs_by_itself_and_tells_what_is_there(tmp_path):
    facts = kernel_facts([BLOCK_SCHED], block=(33, 1, 1))
    folder = write_trace(tmp_path / "t", [launched(facts, np.random.default_rng(4), full=True)])
    result = Trace(folder).results[0]
    done = subprocess.run(
        [sys.executable, "-I", str(folder / "read.py"), str(result)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "12 records in 12 slots, 0 empty, 0 dropped" in done.stdout


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    launch = launched(kernel_facts([BLOCK_SCHED]), np.random.default_rng(5), full=True)
    folder = write_trace(tmp_path / "t", [launch])
    path = Trace(folder).results[0]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="before the records of map block_sched"):
        reader_of(folder).read(str(path))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("numpy", [True, False])
@settings(max_examples=200, deadline=None)
@given(facts=kernels(), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_any_altered_file_is_read_or_refused(tmp_path_factory, numpy, facts, seed, data):
    launch = launched(facts, np.random.default_rng(seed))
    folder = write_trace(tmp_path_factory.mktemp("trace") / "one", [launch])
    (path,) = Trace(folder).results
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, min(len(content), 1000) - 1))
        new = data.draw(st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from((b"9", b"0"))))
        content[at : at + len(new)] = new
    cut = data.draw(st.one_of(st.none(), st.integers(0, len(content))))
    path.write_bytes(bytes(content[:cut]))
    with contextlib.suppress(ValueError):
        reader_of(folder, numpy=numpy).parse(str(path))
