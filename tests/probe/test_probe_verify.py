"""The verifier's rules, the catalogue, and that presets keep to the rules."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.errors import UserError
from gpuwatch.probe import load, parse_python, parse_toml, verify
from gpuwatch.probe.catalogue import folder, presets
from gpuwatch.probe.model import Helper, Map, Probe, Read, Save


def toml(body: str, level: str = "warp", map_level: str = "warp", position: str = "kernel") -> str:
    return (
        f'regs = 2\n[probe.p]\nlevel = "{level}"\npos = "{position}"\nafter = """\n'
        f'.reg .b32 %t<3>; .reg .pred %p, %q; .reg .b64 %d;\n{body}\n"""\n'
        f'[map.m]\nlevel = "{map_level}"\nsize = 8\n[map.m.regs]\nx = ["u64", "None"]\n'
    )


ALLOWED = [
    "mov.u64 %NR1, %clock64;",
    "@%p mov.u32 %t2, %tid.x;",
    "@!%p add.u32 %t0, %t1, 4;",
    "setp.eq.u32 %p|%q, %t0, 0;",
    "mov.b64 {%t0, %t1}, %NR0;",
    "mov.b64 {_, %t1}, %NR0;",
    "activemask.b32 %t0;",
    "activemask.b32 %t1; match.any.sync.b64 %t0, %NR0, %t1;",
    "activemask.b32 %t1; shfl.sync.up.b32 %t0|%p, %t0, 1, 0, %t1;",
    "mul.lo.u32 %t0, %t1, WARP_SZ;",
]


@pytest.mark.parametrize("line", ALLOWED)
def test_computing_is_allowed(line: str) -> None:
    verify(parse_toml(toml(line), "t.toml"))


REFUSED = [
    ("st.global.u32 [%d], %t0;", "SAVE only"),
    ("atom.global.add.u32 %t0, [%d], 1;", "SAVE only"),
    ("red.global.add.u32 [%d], 1;", "SAVE only"),
    ("ld.global.u32 %t0, [%d];", "registers only"),
    ("bar.sync 0;", "wait"),
    ("membar.gl;", "wait"),
    ("bra $L;", "first line"),
    ("call f;", "first line"),
    ("ret;", "first line"),
    ("@%p exit;", "first line"),
    ("trap;", "first line"),
    ("add.cc.u32 %t0, %t1, %t2;", "carry"),
    ("addc.u32 %t0, %t1, %t2;", "carry"),
    ("mvo.u32 %t0, 1;", "mov"),
    ("mov.u32 %r1, 1;", "declare"),
    ("mov.u32 %t3, 1;", "%t0 to %t2"),
    ("mov.u32 %t01, 1;", "declare"),
    ("mov.u32 %tid, 1;", "declare"),
    ("mov.u64 %NR2, 1;", "raise regs"),
    ("mov.u64 %NR0, %NR9;", "raise regs"),
    ("mov.u32 %t0, %r7;", "declare"),
    ("@%p7 mov.u32 %t0, 1;", "declare"),
    ("setp.eq.u32 %p|%z, %t0, 0;", "declare"),
    ("mov.b64 {%t0, %r5}, %NR0;", "declare"),
    ("mov.u32 %tid.x, 1;", "declare"),
    ("mov.u64 %NR0, counter;", "known words"),
    ("mov.u32 1, %t0;", "first"),
    ("match.any.sync.b64 %t0, %NR0, %t1;", "activemask"),
    ("vote.sync.ballot.b32 %t0, %p, 0xffffffff;", "activemask"),
    ("vote.ballot.b32 %t0, %p;", "activemask"),
    ("mov.u64 %NR0, ADDR;", "put the probe at instructions"),
    ("mov.u32 %t0, IN1;", "put the probe at instructions"),
]


@pytest.mark.parametrize(("line", "hint"), REFUSED)
def test_anything_else_is_refused_with_its_place(line: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        verify(parse_toml(toml(f"mov.u32 %t0, 1;  {line}"), "t.toml"))
    assert hint in caught.value.hint
    assert caught.value.at is not None
    assert (caught.value.at.line, caught.value.at.column) == (7, 18)


PROGRAMS = [
    (toml("SAVE [n] {%NR0}"), 7, "no map n"),
    (toml("SAVE [m] {%NR0, %NR1}"), 7, "1 fields, 2"),
    (toml("SAVE [m] {%NR7}"), 7, "not declared"),
    (toml("SAVE [m] {%t9}"), 7, "not declared"),
    (toml("@%zz SAVE [m] {%NR0}"), 7, "not declared"),
    (toml("SAVE [m] {%NR0}", "warp", "thread"), 7, "level warp cannot save"),
    (toml("", "block"), 2, "cannot have level block"),
    (toml("", position="ld global"), 2, "valid position"),
    (toml("", position="line:0"), 2, "valid position"),
    (toml("").replace("size = 8", "size = 4"), 9, "its fields take 8"),
    (toml("").replace("size = 8", "size = 10"), 9, "multiple of 4"),
    (toml("").replace("size = 8", "size = 8\ncap = 0"), 9, "room for 0"),
    (toml("").replace("size = 8", "size = 8\ncap = 2000000000"), 9, "slots of"),
    (toml("").replace('x = ["u64", "None"]', ""), 9, "no fields"),
    ("regs = 1", 1, "no probe"),
]


@pytest.mark.parametrize(("text", "line", "message"), PROGRAMS)
def test_rules_of_programs(text: str, line: int, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        verify(parse_toml(text, "t.toml"))
    assert caught.value.at is not None and caught.value.hint
    assert caught.value.at.line == line


@pytest.mark.parametrize(
    "position",
    ["kernel", "line:42", "ld.global:st.global", "ld.shared::cta:st", "$L__BB0_4", "cp.async.cg"],
)
def test_positions(position: str) -> None:
    verify(parse_toml(toml("", position=position), "t.toml"))


@pytest.mark.parametrize("map_level", ["thread", "warp", "block", "sm", "site", "kernel"])
def test_a_thread_probe_saves_to_maps_of_every_level(map_level: str) -> None:
    verify(parse_toml(toml("SAVE [m] {%NR0}", "thread", map_level), "t.toml"))


def test_fields_count_with_their_alignment() -> None:
    text = (
        "from gpuwatch import probe, Map\nimport gpuwatch.language as gl\n"
        '@Map(level="warp", size=12)\nclass m:\n    a: gl.u32\n    b: gl.u64\n'
        '@probe(pos="kernel", level="warp")\ndef f():\n    m.save(1, 2)\n'
    )
    with pytest.raises(UserError, match="take 16"):
        verify(parse_python(text, "t.py"))
    program = parse_python(text.replace(", size=12", ""), "t.py")
    verify(program)
    assert program.maps[0].size == 16


def test_programs_that_were_not_read_from_a_text_are_verified_too() -> None:
    program = load("block_sched")
    wrong: list[tuple[str, Map | Probe]] = [
        ("unknown level", replace(program.maps[0], level="wrap")),  # type: ignore[arg-type]
        ("no helper", replace(program.probes[1], body=(_save(Helper("clok")),))),
        ("cannot take", replace(program.probes[1], body=(_save(Helper("min")),))),
        ("not declared", replace(program.probes[1], body=(_save(Read("nothing")),))),
    ]
    for message, part in wrong:
        changed = (
            replace(program, maps=(part,))
            if isinstance(part, Map)
            else replace(program, probes=(part,))
        )
        with pytest.raises(UserError, match=message):
            verify(changed)


def _save(value: Helper | Read) -> Save:
    return Save("block_sched", (value, value, value))


def test_presets_load_and_keep_their_layout() -> None:
    assert [(key, name) for key, name, _ in presets()] == [(1, "block_sched"), (2, "warp_duration")]
    for _, name, path in presets():
        program = load(name)
        assert program.name == name and program.title.endswith(".")
        assert load(str(path)) == replace(program, source=str(path))
    sched, duration = load("block_sched").maps[0], load("warp_duration").maps[0]
    assert (sched.size, [(f.name, f.type) for f in sched.fields]) == (
        16, [("start", "u64"), ("elapsed", "u32"), ("cuid", "u32")],
    )  # fmt: skip
    assert (duration.size, [(f.name, f.type) for f in duration.fields]) == (
        32, [("start", "u64"), ("elapsed", "u64"), ("warpid", "u64"), ("sm", "u64")],
    )  # fmt: skip


def test_probes_of_unknown_names_and_files(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load("block_shed")
    assert "block_sched" in caught.value.hint and "did you mean" in caught.value.hint
    for name in ("nothing.py", "nothing.toml", "nothing.txt", "folder/"):
        with pytest.raises(UserError):
            load(str(tmp_path / name))
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("folder.py", "binary.toml", "nul\0.py"):
        with pytest.raises(UserError, match=r"cannot read|no probe file"):
            load(str(tmp_path / name))


def test_folders_are_found_by_name() -> None:
    assert (folder("probes") / "block_sched.py").is_file()
    with pytest.raises(UserError, match="not installed"):
        folder("nothing of this name")
