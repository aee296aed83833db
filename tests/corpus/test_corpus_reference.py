"""That a comparison with the reference interpreter sees what is wrong."""

from __future__ import annotations

import corpus_reference
import pytest
import reference_machine
import scalar_opcodes
from scalar_opcodes import Form


def one_more(form: Form, a: int, b: int) -> int:
    """A wrong sum where it is no address."""
    return a + b + (form.kind == "s32")


def differences(program: str, kernel: str) -> list[str]:
    (one,) = corpus_reference.comparisons(program, lambda key: key == f"{program}/{kernel}")
    return one.differences


def test_wrong_buffers_and_variables_show(monkeypatch: pytest.MonkeyPatch) -> None:
    assert differences("globals", "writes_a_global") == []
    monkeypatch.setitem(scalar_opcodes._INTEGER, "add", one_more)
    found = differences("globals", "writes_a_global")
    assert found[-1] == "offsets from byte 0"
    assert found[0].startswith("buffer ")


def test_an_error_of_the_interpreter_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(scalar_opcodes._INTEGER, "add")
    assert differences("globals", "writes_a_global") == ["all, for KeyError: 'add'"]


def test_wrong_output_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_machine, "formatted", lambda *_: "nothing")
    assert differences("printing", "says") == ["the output"]
