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
    ".reg .b64 %s1_<5>; mov.u64 %s1_2, 3;",
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
    ("mov.b64 {%t0, %t1}|%z, %NR0;", "declare"),
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
    [
        "kernel",
        "line:42",
        "ld.global:st.global",
        "ld.shared::cta:st",
        "$L__BB0_4",
        "cp.async.cg",
        "label:AGAIN",
    ],
)
def test_positions(position: str) -> None:
    verify(parse_toml(toml("", position=position), "t.toml"))


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        ("kernel", "gl.addr", "addr needs an instruction"),
        ("label:X", "gl.in1", "in1 needs an instruction"),
        ("$X", "gl.bytes", "bytes needs an instruction"),
        ("add", "gl.addr", "addr needs an access to memory, add makes none"),
        ("ld.shared::cta:mul.wide", "gl.bytes", "mul.wide makes none"),
        ("bar", "gl.sectors()", "sectors needs an access"),
        ("ld.shared::cta:st", "gl.addr", ""),
        ("line:4", "gl.addr", ""),
        ("add", "gl.in1", ""),
        ("add", "gl.out", ""),
    ],
)
def test_helpers_are_there_where_their_instruction_is(
    position: str, value: str, message: str
) -> None:
    text = (
        "import gpuwatch.language as gl\nfrom gpuwatch import probe\na: gl.u64\n"
        f'@probe(pos="{position}", level="thread")\ndef f():\n    a = {value}\n'
    )
    if not message:
        verify(parse_python(text, "t.py"))
        return
    with pytest.raises(UserError, match=message) as caught:
        verify(parse_python(text, "t.py"))
    assert caught.value.at is not None and caught.value.at.line == 6


def test_out_is_not_there_before_the_instruction() -> None:
    text = (
        "import gpuwatch.language as gl\nfrom gpuwatch import probe\na: gl.u64\n"
        '@probe(pos="add", level="thread", before=True)\ndef f():\n    a = gl.out\n'
    )
    with pytest.raises(UserError, match="not written yet"):
        verify(parse_python(text, "t.py"))


MAP_HEAD = "import gpuwatch.language as gl\nfrom gpuwatch import Map, probe\n"
MAPS = [
    ('level="warp", type="hist"', "x: gl.u32; y: gl.u32", "2 fields"),
    ('level="warp", type="hist"', "x: gl.pred", "a predicate"),
    ('level="warp", type="hist", size=4', "x: gl.u32", "size=4"),
    ('level="warp", type="hist", cap=1', "x: gl.u32", "1 buckets"),
    ('level="warp", type="hist", step=4', "x: gl.u32", "low or step"),
    ('level="warp", type="hist", scale="linear", step=0', "x: gl.u32", "step=0"),
    ('level="warp", type="hist", scale="linear", low=-1', "x: gl.u32", "outside u32"),
    ('level="warp", type="hist", cap="dynamic"', "x: gl.u32", "buckets|dynamic"),
    ('level="warp", type="hist", scale="log10"', "x: gl.u32", "scale cannot be"),
    ('level="warp", type="hist", low="x"', "x: gl.u32", "whole number"),
    ('level="warp", type="reduce", cap=2', "x: gl.u32", "cap=2"),
    ('level="warp", type="reduce", cap="dynamic"', "x: gl.u32", "dynamic"),
    ('level="warp", type="reduce", size=12', "x: gl.u64; y: gl.u32", "multiple of its u64"),
    ('level="warp", type="reduce"', "x: gl.u64 = mean", "a field cannot be"),
    ('level="warp", type="array"', "x: gl.u64 = max", "fields to combine"),
    ('level="warp", sample=2', "x: gl.u64", "no argument sample"),
]


@pytest.mark.parametrize(("options", "fields", "message"), MAPS)
def test_rules_of_maps(options: str, fields: str, message: str) -> None:
    body = "".join(f"    {field}\n" for field in fields.split("; "))
    text = MAP_HEAD + f"@Map({options})\nclass m:\n{body}"
    text += '@probe(pos="kernel", level="warp")\ndef f():\n    pass\n'
    with pytest.raises(UserError, match=message) as caught:
        verify(parse_python(text, "t.py"))
    assert caught.value.at is not None and caught.value.hint


SAMPLED = """\
@Map(level="{level}", type="array")
class m:
    x: gl.u32
@probe(pos="kernel", level="thread", {one})
def f():
    m.save(1)
@probe(pos="ret", level="thread", {other})
def g():
    m.save(1)
"""


@pytest.mark.parametrize(
    ("level", "one", "other", "message"),
    [
        ("warp", "sample=2", "sample=3", "mix records"),
        ("warp", "sample=2", "sample=2, sample_unit='block'", "mix records"),
        ("kernel", "sample=2", "before=False", "mix records"),
        ("block", "sample=2", "sample=2", "slot per block"),
        ("warp", "sample=0", "sample=0", "sample=0"),
        ("warp", "sample_unit='grid'", "sample=1", "sample_unit cannot be"),
        ("warp", "sample=8", "sample=8", ""),
        ("block", "sample=8, sample_unit='block'", "sample=8, sample_unit='block'", ""),
    ],
)
def test_probes_that_share_a_map_have_one_sample(
    level: str, one: str, other: str, message: str
) -> None:
    text = MAP_HEAD + SAMPLED.format(level=level, one=one, other=other)
    if not message:
        program = parse_python(text, "t.py")
        verify(program)
        assert program.maps[0].sample == 8
        return
    with pytest.raises(UserError, match=message):
        verify(parse_python(text, "t.py"))


DECLARATIONS = [
    (".reg .b32 %laneid;", "register of the GPU"),
    (".reg .b32 %tid;", "register of the GPU"),
    (".reg .b32 mov;", "no name of a register"),
    (".reg .b128 %wide;", "has type"),
    (".reg .f16 %half;", "has type"),
    (".reg .b32 %t1;", "declared already"),
    (".reg .b64 %NR0;", "declared already"),
    (".reg .b64 %NR<2>;", "declared already"),
    (".reg .b64 %s1<5>;", "ends in a digit"),
    (".reg .b32 %many<5000>;", "makes 5000"),
    (".reg .b32 %many<999999999>;", "makes 999999999"),
]


@pytest.mark.parametrize(("line", "message"), DECLARATIONS)
def test_declarations_are_names_of_their_own(line: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        verify(parse_toml(toml(f"{line} mov.u32 %t0, 1;"), "t.toml"))
    assert caught.value.at is not None and caught.value.hint


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
    names = [
        *("block_sched", "warp_duration", "gmem_traffic", "smem_conflicts", "instr_mix"),
        *("barrier_wait", "divergence", "mem_latency", "dmat"),
    ]
    assert [(key, name) for key, name, _ in presets()] == list(enumerate(names, 1))
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


def test_examples_of_the_readme_are_sound() -> None:
    text = (folder("probes") / "README.md").read_text()
    imports = "import gpuwatch.language as gl\nfrom gpuwatch import Map, probe\n"
    examples = [part.partition("\n```")[0] for part in text.split("```python\n")[1:]]
    assert len(examples) == 2
    for example in examples:
        given = example if "import" in example else imports + example
        verify(parse_python(given, "example.py"))


@pytest.mark.parametrize(
    "position", ["line:x", "line:0", "line:4:ld", "label:", "label:7", "line:"]
)
def test_a_position_of_a_line_or_label_is_not_taken_for_opcodes(position: str) -> None:
    text = (
        "from gpuwatch import Map, probe\n"
        "@Map(level='kernel', type='reduce')\nclass m:\n    n: gl.u64\n"
        f"@probe(pos='{position}', level='thread')\ndef f():\n    m.save(1)\n"
    )
    with pytest.raises(UserError, match="no valid position"):
        verify(parse_python("import gpuwatch.language as gl\n" + text, "t.py"))


def test_a_probe_file_named_without_its_suffix_is_pointed_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        load("mine")
    assert caught.value.hint == "did you mean the file mine.toml?"
    with pytest.raises(UserError) as caught:
        load("zzzz")
    assert caught.value.hint == "presets: " + ", ".join(name for _, name, _ in presets())


def test_a_preset_is_named_without_the_folder_that_it_is_installed_in() -> None:
    program = load("block_sched")
    assert program.maps[0].at is not None and program.maps[0].at.file == "probes/block_sched.py"
    assert Path(program.source).is_file()
