"""Counters at random places of random programs, against the reference interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
import reference_machine
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_programs import THREADS, Step, input_rows, programs, text_of
from sim_support import launch_of, run
from weaving import read_maps

from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.instrument import lay_out, weave
from gpuwatch.instrument.positions import Matches
from gpuwatch.probe import parse_python
from gpuwatch.ptx import parse
from gpuwatch.ptx.model import Instruction, Label

HEAD = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="thread", type="array", size=16, cap=1)
class counts:
    c0: gl.u32
    c1: gl.u32
    c2: gl.u32
    c3: gl.u32


@probe(pos="kernel", level="thread")
def leave():
    counts.save(c0, c1, c2, c3)
"""
COUNTER = """

c{number}: gl.u32 = 0


@probe(pos="{position}", level="thread", before={before})
def at_{number}():
    c{number} += 1
"""
SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example,
        HealthCheck.function_scoped_fixture)  # fmt: skip

Run = Counter[tuple[int, int, bool]]
"""How often a thread came to the instruction at an offset, by whether its guard held."""


def arrays(seed: int) -> list[NDArray[np.generic]]:
    inputs = input_rows(seed)
    random = np.random.default_rng(seed)
    return [
        inputs,
        np.zeros_like(inputs),
        random.integers(0, 256, 64 * THREADS, np.uint8),
        random.integers(0, 256, 64, np.uint8),
    ]


def executed(
    text: str, buffers: Sequence[NDArray[np.generic]], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """What the reference interpreter executes."""
    runs: Run = Counter()
    chosen = reference_machine._Thread._is_chosen

    def counted(thread: reference_machine._Thread, instruction: Instruction) -> bool:
        holds = chosen(thread, instruction)
        runs[thread._specials["%tid.x"], instruction.start, holds] += 1
        return holds

    with monkeypatch.context() as patched:
        patched.setattr(reference_machine._Thread, "_is_chosen", counted)
        reference_machine.execute(
            text, 1, THREADS, [one.tobytes() for one in buffers], 64 * THREADS
        )
    return runs


def expected(text: str, position: str, before: bool, runs: Run) -> list[int]:
    """Runs of the probe in each thread. A label counts by the instruction behind it."""
    body = parse(text).entries()[0].body or []
    starts: dict[int, bool] = {}
    for one, following in pairwise(body):
        if isinstance(one, Instruction) and Matches(position)[one.tokens]:
            starts[one.start] = before or one.opcode != "bra"
        if isinstance(one, Label) and position == f"label:{one.name}":
            assert isinstance(following, Instruction)
            starts[following.start] = True
    label = position.startswith("label:")
    return [
        sum(
            runs[thread, start, holds] + label * runs[thread, start, not holds]
            for start, holds in starts.items()
        )
        for thread in range(THREADS)
    ]


@given(programs, st.integers(0, 1 << 20), st.data())
@settings(
    max_examples=6, deadline=None, suppress_health_check=SLOW,
    phases=(Phase.explicit, Phase.generate),
)  # fmt: skip
def test_counters_anywhere_are_exact(
    monkeypatch: pytest.MonkeyPatch, steps: list[Step], seed: int, data: st.DataObject
) -> None:
    text = text_of(steps)
    module = parse(text)
    body = module.entries()[0].body or []
    names = sorted({".".join(one.tokens[:2]) for one in body if isinstance(one, Instruction)})
    names.remove("ret")
    labels = [
        f"label:{one.name}"
        for one, following in pairwise(body)
        if isinstance(one, Label) and isinstance(following, Instruction)
    ]
    place = st.tuples(st.sampled_from(names + labels), st.booleans())
    places = data.draw(st.lists(place, min_size=4, max_size=4))
    program = parse_python(
        HEAD + "".join(
            COUNTER.format(number=number, position=position, before=before)
            for number, (position, before) in enumerate(places)
        ),
        "counts.py",
    )  # fmt: skip
    buffers = arrays(seed)
    plain = run(text, "random", (1, 1, 1), (THREADS, 1, 1), buffers).buffers
    woven = weave(module, "random", program)
    layout = lay_out(woven, (1, 1, 1), (THREADS, 1, 1))
    device = open_sim("a10", threads=1)
    image = KernelImage("random", woven.text, b"", 40, 0, woven.pointer_variable)
    launch = launch_of("random", (1, 1, 1), (THREADS, 1, 1), buffers)
    probed = device.load(image, launch, layout.buffers)
    try:
        probed.run()
        for before, after in zip(plain, probed.read_buffers(), strict=True):
            assert before.tobytes() == after.tobytes()
        counts = read_maps(probed, layout)[0]["counts"]
    finally:
        probed.close()
        device.close()
    runs = executed(text, buffers, monkeypatch)
    for number, (position, before) in enumerate(places):
        found = counts.column(f"c{number}").tolist()
        assert found == expected(text, position, before, runs), (position, before, text)
