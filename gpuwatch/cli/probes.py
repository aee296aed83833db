"""`gpuwatch probes`: the presets; a new probe file; whether one is sound; what it is."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from gpuwatch.cli.arguments import base_parser, dim3
from gpuwatch.cli.new_probe import write_new_probe
from gpuwatch.cli.ptx import print_diff
from gpuwatch.engine.choices import probe_choices
from gpuwatch.engine.frame import launch_text
from gpuwatch.errors import UserError
from gpuwatch.instrument import lay_out, weave
from gpuwatch.instrument.memory import map_bytes
from gpuwatch.instrument.model import MapLayout
from gpuwatch.probe import load
from gpuwatch.probe.describe import describe_fields, describe_probe, describe_slot
from gpuwatch.probe.model import Program
from gpuwatch.ptx import parse

SM_COUNT = 72
"""SMs of the default simulated device, for maps that have a slot per SM."""

EXAMPLE = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry example(.param .u64 in, .param .u64 out, .param .u32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	.shared .align 16 .b8 tile[4096];
	ld.param.u64 %rd1, [in];
	ld.param.u64 %rd2, [out];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x;
	setp.ge.u32 %p1, %r2, %r1;
	@%p1 bra $done;
	mul.wide.u32 %rd3, %r2, 4;
	add.s64 %rd4, %rd1, %rd3;
	ld.global.u32 %r3, [%rd4];
	shl.b32 %r4, %r2, 2;
	mov.u32 %r5, tile;
	add.s32 %r6, %r5, %r4;
	st.shared.u32 [%r6], %r3;
	bar.sync 0;
	ld.shared.u32 %r7, [%r6];
	add.s64 %rd5, %rd2, %rd3;
	st.global.u32 [%rd5], %r7;
	atom.global.add.u32 %r8, [%rd2], 1;
$done:
	ret;
}
"""
"""A kernel in which every usual position occurs."""


def parser(command: str) -> argparse.ArgumentParser:
    parser = base_parser(command)
    parser.add_argument("--json", action="store_true", help="print JSON")
    actions = parser.add_subparsers(dest="action", metavar="new | check | show", title="actions")
    new = actions.add_parser("new", help="write a first probe of your own, to change")
    new.add_argument("name", metavar="NAME", help="its file; .py may be left out")
    check = actions.add_parser("check", help="verify probe files without a kernel")
    check.add_argument("files", metavar="FILE", nargs="+")
    show = actions.add_parser("show", help="what a probe measures and becomes")
    show.add_argument("name", metavar="NAME", help="a preset or a probe file")
    show.add_argument("--grid", type=dim3, default=(32, 32, 1), help="default 32,32")
    show.add_argument("--block", type=dim3, default=(32, 32, 1), help="default 32,32")
    return parser


def run(given: argparse.Namespace) -> int:
    if given.action == "new":
        return _new(given.name)
    if given.action == "check":
        return _check(given.files)
    if given.action == "show":
        return _show(given)
    rows = [asdict(choice) for choice in probe_choices()]
    if given.json:
        print(json.dumps(rows, indent=2))
        return 0
    for row in rows:
        print(f"{row['key']}  {row['name']:<16} {row['title']}")
    return 0


def _new(name: str) -> int:
    path = write_new_probe(name)
    print(f"wrote {path}: {load(str(path)).title}")
    print(f"watch with it:       gpuwatch gemm -p {path}")
    print(f"after each change:   gpuwatch probes check {path}")
    return 0


def _check(files: list[str]) -> int:
    """Every file's first mistake; 2 when there is one."""
    status = 0
    for file in files:
        try:
            program = load(file)
        except UserError as problem:
            print(f"gpuwatch: {problem.render()}", file=sys.stderr)
            status = 2
            continue
        maps, probes = len(program.maps), len(program.probes)
        print(f"{file}: sound; {_count(maps, 'map')}, {_count(probes, 'probe')}")
    return status


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _show(given: argparse.Namespace) -> int:
    program = load(given.name)
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{program.name}: {program.title}", style="bold")
    for probe in program.probes:
        console.print(f"  probe {describe_probe(probe)}")
    try:
        woven = weave(parse(EXAMPLE, "example.ptx"), "example", program)
    except UserError as problem:
        console.print(f"it does not attach to the example kernel: {problem.message}")
        return 0
    layout = lay_out(woven, given.grid, given.block, sm_count=SM_COUNT)
    console.print()
    console.print(_map_table(program, layout, given.grid, given.block))
    console.print("In a small example kernel it becomes:", style="bold")
    print_diff(woven, 1, console)
    return 0


def _map_table(
    program: Program,
    layout: MapLayout,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
) -> Table:
    shape = launch_text(grid, block)
    title = f"Maps, for a launch of {shape}: {sum(layout.buffers):,} bytes"
    table = Table(title=title, title_justify="left", box=None)
    for name in ("map", "type", "slots", "record", "fields at byte", "bytes"):
        table.add_column(name, justify="right" if name in ("slots", "bytes") else "left")
    for place in layout.places:
        map_ = place.map
        table.add_row(
            map_.name,
            f"{map_.type} per {map_.level}",
            f"{place.slots:,}",
            describe_slot(map_),
            describe_fields(map_),
            f"{map_bytes(layout, place):,}",
        )
    if not program.maps:
        table.add_row("none")
    return table
