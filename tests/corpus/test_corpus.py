"""Kernels of the corpus with a probe: the same outputs, every record, a GPU's own answers.

Four of each program, evenly spread; all of them where GPUWATCH_CORPUS is "all".
"""

from __future__ import annotations

import os

import answers
import corpus_harness as corpus
import pytest
from corpus_expected import EXPECTED

MOST = None if os.environ.get("GPUWATCH_CORPUS") == "all" else 4


@pytest.mark.parametrize("program", corpus.programs())
def test_kernels_of(program: str) -> None:
    known = answers.recorded(program)
    problems: list[str] = []
    seen: set[str] = set()
    for name, found in answers.each_answer(program, corpus.DEVICE, MOST):
        key = f"{program}/{name}"
        seen.add(key)
        problems += [f"{key}: {line}" for line in _problems(key, found)]
        if name in known:
            problems += answers.differences(name, found, known[name])
    assert not problems, "\n".join(problems)
    expected = {key for key in EXPECTED if key.startswith(f"{program}/")}
    assert MOST is not None or expected <= seen


def _problems(key: str, found: answers.Answer) -> list[str]:
    """What is wrong with an answer by itself."""
    refusal = found.get("refused", "")
    if key in EXPECTED:
        expected = EXPECTED[key] in refusal
        return [] if expected else [f"refused {refusal!r}, expected {EXPECTED[key]!r}"]
    if refusal:
        return [f"refused: {refusal}"]
    lines = [] if found["identical"] else ["the probe changed the outputs"]
    short = {what: found[what] for what in ("missing", "dropped") if found[what]}
    return [*lines, f"records are {short}"] if short else lines


def test_every_recorded_answer_has_its_kernel() -> None:
    assert {path.stem for path in answers.FOLDER.glob("*.json")} <= set(corpus.programs())
