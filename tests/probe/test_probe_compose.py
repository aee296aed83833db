"""Several programs as one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.errors import UserError
from gpuwatch.probe import compose, load, parse_python, parse_toml, verify
from gpuwatch.probe.model import Assign, Binary, If, Ptx, Read, Save

PYTHON = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe
a: gl.u64 = 1
b: gl.u32 = 2
@Map(level="thread")
class m:
    x: gl.u64
@probe(pos="kernel", level="thread")
def p():
    if a < 3:
        a = a + b
    m.save(gl.min(a, -b))
"""
TOML = """\
regs = 2
[probe.p]
level = "thread"
pos = "kernel"
before = ".reg .b32 %t<2>; mov.u64 %NR1, %clock64;"
after = "sub.u64 %NR0, %NR1, 5; SAVE [ m ] { %NR0 };"
[map.m]
level = "thread"
regs = { x = "u64" }
"""


def test_one_program_is_itself() -> None:
    program = parse_python(PYTHON, "one.py")
    assert compose([program]) is program


def test_names_that_clash_get_the_programs_name() -> None:
    one, two = parse_python(PYTHON, "one.py"), parse_python(PYTHON, "two.py")
    both = compose([one, two])
    verify(both)
    assert both.name == "one,two"
    assert [map_.name for map_ in both.maps] == ["m", "two_m"]
    assert [r.name for r in both.registers] == ["a", "b", "two_a", "two_b"]
    assert [r.initial for r in both.registers] == [1, 2, 1, 2]
    assert [probe.name for probe in both.probes] == ["p", "two_p"]
    assert both.probes[0] == one.probes[0]
    branch, save = both.probes[1].body
    assert isinstance(branch, If) and isinstance(save, Save)
    (assign,) = branch.then
    assert isinstance(assign, Assign)
    assert (assign.target, assign.value) == ("two_a", Binary("+", Read("two_a"), Read("two_b")))
    assert save.map == "two_m"
    assert branch.at is not None and branch.at.file == "two.py"


def test_registers_in_texts_are_renamed_with_their_operands() -> None:
    both = compose([parse_toml(TOML, "one.toml"), parse_toml(TOML, "two.toml")])
    verify(both)
    assert [r.name for r in both.registers] == ["%NR0", "%NR1", "%two_NR0", "%two_NR1"]
    run, save = both.probes[3].body
    assert isinstance(run, Ptx) and isinstance(save, Save)
    assert run.text == "sub.u64 %two_NR0, %two_NR1, 5;"
    assert run.instructions[0].operands[0].name == "%two_NR0"  # type: ignore[union-attr]
    assert (save.map, save.values) == ("two_m", (Read("%two_NR0"),))


def test_a_name_that_is_taken_already_is_not_given() -> None:
    one, two = parse_python(PYTHON, "one.py"), parse_python(PYTHON, "two.py")
    taken = parse_python(PYTHON.replace("class m", "class two_m").replace("m.save", "two_m.save"),
                         "zero.py")  # fmt: skip
    names = [map_.name for map_ in compose([taken, one, two]).maps]
    assert names == ["two_m", "m", "two_m_2"]
    verify(compose([taken, one, two]))


def test_both_forms_together() -> None:
    both = compose([parse_toml(TOML, "a-b.toml"), parse_python(PYTHON, "c.py")])
    verify(both)
    assert [probe.name for probe in both.probes] == ["p", "p", "c_p"]
    again = compose([parse_python(PYTHON, "c.py"), parse_toml(TOML, "a-b.toml")])
    assert [map_.name for map_ in again.maps] == ["m", "a_b_m"]


def test_what_cannot_be_composed() -> None:
    program = parse_python(PYTHON, "one.py")
    with pytest.raises(UserError, match="no probe"):
        compose([])
    with pytest.raises(UserError, match="two probes named one"):
        compose([program, program])
    second = replace(program, name="two", callback="y.py")
    assert compose([program, second]).callback == "y.py"
    assert compose([replace(program, callback="x.py"), second]).callback == "x.py,y.py"


def test_loading_several(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(PYTHON)
    (tmp_path / "with,comma.py").write_text(PYTHON)
    both = load(f"block_sched, {tmp_path}/one.py")
    assert both.name == "block_sched,one"
    assert load(f"{tmp_path}/with,comma.py").name == "with,comma"
    for names in ("block_sched,nothing", "block_sched,block_sched", ",", "block_sched,x.py"):
        with pytest.raises(UserError) as caught:
            load(names)
        assert caught.value.hint
