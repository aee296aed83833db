"""Kernels of the corpus with a probe: the same outputs, every record, a GPU's own answers; and
without: the outputs of the reference interpreter, but of large ones only where GPUWATCH_CORPUS is
"all".
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import answers
import corpus_harness as corpus
import corpus_reference as reference
import pytest
from corpus_expected import EXPECTED, LARGE, LARGE_INSTRUCTIONS

ALL = os.environ.get("GPUWATCH_CORPUS") == "all"


@pytest.mark.parametrize("program", corpus.programs())
def test_kernels_of(program: str) -> None:
    known = answers.recorded(program)
    problems: list[str] = []
    seen: set[str] = set()
    for name, found in answers.each_answer(program, corpus.DEVICE):
        key = f"{program}/{name}"
        seen.add(key)
        problems += [f"{key}: {line}" for line in _problems(key, found)]
        if name in known:
            problems += answers.differences(name, found, known[name])
    assert not problems, "\n".join(problems)
    assert _of(program, EXPECTED) <= seen
    # In the same test, because compiled kernels are kept for the process that compiled them.
    problems = _against_the_reference(program)
    assert not problems, "\n".join(problems)


def _problems(key: str, found: answers.Answer) -> list[str]:
    """What is wrong with an answer by itself."""
    refusal = found.get("refused", "")
    if refusal or key in EXPECTED:
        return _refusal_problems(key, refusal)
    lines = [] if found["identical"] else ["the probe changed the outputs"]
    short = {what: found[what] for what in ("missing", "dropped") if found[what]}
    return [*lines, f"records are {short}"] if short else lines


def _refusal_problems(key: str, refusal: str) -> list[str]:
    expected = EXPECTED.get(key)
    if expected is None:
        return [f"refused: {refusal}"] if refusal else []
    return [] if expected in refusal else [f"refused {refusal!r}, expected {expected!r}"]


def _against_the_reference(program: str) -> list[str]:
    """In what kernels differ from the reference interpreter, a line each."""
    problems: list[str] = []
    missing = _of(program, EXPECTED) | (_of(program, LARGE) if ALL else set())
    for one in reference.comparisons(program, lambda key: ALL or key not in LARGE):
        missing.discard(one.kernel)
        lines = _refusal_problems(one.kernel, one.refused)
        lines += [f"{what} is not the reference's" for what in one.differences]
        if (one.instructions > LARGE_INSTRUCTIONS) != (one.kernel in LARGE):
            lines.append(f"executes {one.instructions} thread instructions")
        problems += [f"{one.kernel}: {line}" for line in lines]
    return [*problems, *(f"{key} is not in the corpus" for key in sorted(missing))]


def _of(program: str, keys: Iterable[str]) -> set[str]:
    return {key for key in keys if key.startswith(f"{program}/")}


def test_every_recorded_answer_has_its_kernel() -> None:
    assert {path.stem for path in answers.FOLDER.glob("*.json")} <= set(corpus.programs())
