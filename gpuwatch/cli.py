"""The command line."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from gpuwatch import __version__
from gpuwatch.doctor import doctor
from gpuwatch.engine import report
from gpuwatch.engine.choices import probe_choices
from gpuwatch.engine.client import WorkerClient
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.instrument import weave
from gpuwatch.probe import load
from gpuwatch.probe.catalogue import folder
from gpuwatch.tui.app import run_app

DESCRIPTION = "A live view inside a running CUDA kernel, on a GPU or on a simulated one."
EPILOG = """\
what follows -- are arguments of the program itself:
  gpuwatch kernels/gemm.cu -- 512 512 512
commands:
  gpuwatch SOURCE           watch it live (prints the report when this is no terminal)
  gpuwatch report SOURCE    the same without a screen
  gpuwatch kernels SOURCE   the kernels of a file and how they are launched
  gpuwatch probes           the presets
  gpuwatch ptx SOURCE       the probed PTX
  gpuwatch doctor           what works here, and what mends the rest
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, 2 for bad input, 1 for a fault while running."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    given, program = _split(given)
    command = given[0] if given and given[0] in _COMMANDS else "watch"
    rest = given if command == "watch" else given[1:]
    parse, run = _COMMANDS[command]
    options = parse(command).parse_args(rest)
    options.arguments = program
    try:
        return run(options)
    except UserError as problem:
        print(f"gpuwatch: {problem.render()}", file=sys.stderr)
        return problem.status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1


def _split(given: list[str]) -> tuple[list[str], tuple[str, ...]]:
    if "--" not in given:
        return given, ()
    at = given.index("--")
    return given[:at], tuple(given[at + 1 :])


def _base_parser(command: str) -> argparse.ArgumentParser:
    watching = command == "watch"
    parser = argparse.ArgumentParser(
        prog="gpuwatch" if watching else f"gpuwatch {command}",
        description=DESCRIPTION if watching else None,
        epilog=EPILOG if watching else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if watching:
        parser.add_argument("--version", action="version", version=f"gpuwatch {__version__}")
    return parser


def _source_parser(command: str) -> argparse.ArgumentParser:
    parser = _base_parser(command)
    add = parser.add_argument
    add("source", metavar="SOURCE", help="a .cu file with a main(), or a shipped one by name")
    add("-k", "--kernel", default="", help="a kernel's name, or a part that only one has")
    add("-p", "--probe", default="block_sched", help="a preset or a probe file")
    add("-d", "--device", default="auto", help="auto, sim, sim:a10, sim:h200, sim:t4, cuda, cuda:N")
    add("--cuda-home", metavar="DIR", help="a CUDA toolkit to take nvcc and ptxas from")
    add("--nvcc-flags", metavar="FLAGS", default="", help="further flags: --nvcc-flags=-DTILE=16")
    add("--timeout", type=_seconds, default=10.0, metavar="S", help="longest launch (default 10 s)")
    return parser


def _watch_parser(command: str) -> argparse.ArgumentParser:
    parser = _source_parser(command)
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument("--no-picker", action="store_true", help="start watching at once")
    parser.set_defaults(launches=3, json=False)
    return parser


def _report_parser(command: str) -> argparse.ArgumentParser:
    parser = _source_parser(command)
    parser.add_argument("-n", "--launches", type=_positive, default=3, help="default 3")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _listing_parser(command: str) -> argparse.ArgumentParser:
    parser = _source_parser(command)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _probes_parser(command: str) -> argparse.ArgumentParser:
    parser = _base_parser(command)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def _options(given: argparse.Namespace) -> Options:
    return Options(
        source=_find_source(given.source),
        device=given.device,
        kernel=given.kernel,
        probe=given.probe,
        arguments=given.arguments,
        nvcc_flags=_split_flags(given.nvcc_flags),
        cuda_home=given.cuda_home,
        timeout=given.timeout,
    )


def _split_flags(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as problem:
        raise UserError(
            f"--nvcc-flags {text!r} cannot be split into words: {problem}",
            hint="close every quote",
        ) from problem


def _find_source(name: str) -> str:
    """`name`, or the shipped kernel that it names from any folder."""
    if Path(name).exists():
        return name
    shipped = folder("kernels") / Path(name).name
    known = name in (shipped.name, shipped.stem, f"kernels/{shipped.name}")
    for candidate in (shipped, shipped.with_suffix(".cu")):
        if known and candidate.is_file():
            return str(candidate)
    return name


def _watch(given: argparse.Namespace) -> int:
    options = _options(given)
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        return _report(given)
    with WorkerClient(options) as watch:
        return run_app(watch, ascii_only=given.ascii, picker=not given.no_picker)


def _report(given: argparse.Namespace) -> int:
    options = _options(given)
    shown = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as bar:
        task = bar.add_task("starting", total=given.launches)
        session = Session(options, lambda text: bar.update(task, description=text))
        try:
            session.prepare()
            bar.update(task, description="launching")
            bar.update(task, completed=session.launches)
            while session.launches < given.launches:
                session.step()
                bar.advance(task)
            frame = session.frame()
            if given.json:
                print(json.dumps(report.as_json(frame), indent=2))
            else:
                bar.stop()
                report.render(frame, Console(highlight=False, soft_wrap=True))
        finally:
            session.close()
    return 0


def _kernels(given: argparse.Namespace) -> int:
    session = Session(_options(given))
    choices = session.kernels()
    session.close()
    if given.json:
        print(json.dumps([asdict(choice) for choice in choices], indent=2))
        return 0
    for choice in choices:
        launched = "never launched"
        if choice.grid and choice.block:
            grid, block = ("x".join(map(str, shape)) for shape in (choice.grid, choice.block))
            launched = f"<<<{grid}, {block}>>>  launched {_times(choice.launches)}"
        print(f"{choice.demangled}  {launched}")
    return 0


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _probes(given: argparse.Namespace) -> int:
    rows = [asdict(choice) for choice in probe_choices()]
    if given.json:
        print(json.dumps(rows, indent=2))
        return 0
    for row in rows:
        print(f"{row['key']}  {row['name']:<16} {row['title']}")
    return 0


def _ptx(given: argparse.Namespace) -> int:
    session = Session(_options(given))
    program = session.program
    mangled = program.find_kernel(given.kernel)
    sys.stdout.write(weave(program.module, mangled, load(given.probe)).text)
    session.close()
    return 0


def _doctor(_given: argparse.Namespace) -> int:
    return doctor(Console(highlight=False, soft_wrap=True))


_Command = tuple[Callable[[str], argparse.ArgumentParser], Callable[[argparse.Namespace], int]]
_COMMANDS: dict[str, _Command] = {
    "watch": (_watch_parser, _watch),
    "report": (_report_parser, _report),
    "kernels": (_listing_parser, _kernels),
    "probes": (_probes_parser, _probes),
    "ptx": (_source_parser, _ptx),
    "doctor": (_base_parser, _doctor),
}
