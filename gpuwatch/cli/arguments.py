"""The arguments of every command, and the options of a session that they make."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from pathlib import Path

from gpuwatch import __version__
from gpuwatch.engine.options import DEFAULT_MAP_LIMIT, Options
from gpuwatch.errors import UserError
from gpuwatch.launch.stored import stored_source
from gpuwatch.probe.catalogue import folder
from gpuwatch.trace.callback import SECONDS, check_callback
from gpuwatch.trace.export import FORMATS

DESCRIPTION = "A live view inside a running CUDA kernel, on a GPU or on a simulated one."
EPILOG = """\
what follows -- are arguments of the program itself:
  gpuwatch kernels/gemm.cu -- 512 512 512
commands:
  gpuwatch SOURCE              watch it live (prints the report when this is no terminal)
  gpuwatch SOURCE SOURCE       the same with two to compare: tab switches
  gpuwatch report SOURCE       the same without a screen; SOURCE may be a trace
  gpuwatch record SOURCE       launches written to a trace folder
  gpuwatch serve SOURCE        the live view in a browser
  gpuwatch run -- CMD          any program as it is: its kernels live, probed on demand
  gpuwatch record -- CMD       launches of any program, as it runs, written to a trace folder
  gpuwatch capture -o D -- CMD one launch of any program, stored to be launched again: gpuwatch D
  gpuwatch replay DIR          a recorded trace on the live screen
  gpuwatch export DIR --to F   a trace as perfetto, chrome, parquet, csv, json or npz
  gpuwatch compare A B         two sources or traces, figure by figure
  gpuwatch kernels SOURCE      the kernels of a file and how they are launched
  gpuwatch probes              the presets
  gpuwatch probes new NAME     a first probe of your own, to change
  gpuwatch probes check FILE   whether a probe file keeps to the rules
  gpuwatch probes show NAME    what a probe measures, its maps, the PTX that it becomes
  gpuwatch ptx SOURCE          the probed PTX; with --diff what was woven in
  gpuwatch keys                the keys, their actions, and the file that changes them
  gpuwatch doctor              what works here, and what mends the rest
"""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def split_program(given: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """gpuwatch's arguments and, behind the first `--`, those of the program."""
    if "--" not in given:
        return given, ()
    at = given.index("--")
    return given[:at], tuple(given[at + 1 :])


def base_parser(command: str) -> argparse.ArgumentParser:
    """The parser of `gpuwatch COMMAND`, or of `gpuwatch` itself for the command "watch"."""
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


def source_parser(command: str) -> argparse.ArgumentParser:
    """A parser of the arguments that every command with a SOURCE takes; that of `record` may be
    a program instead."""
    parser = base_parser(command)
    add = parser.add_argument
    words = "a .cu or .ptx file, a built program, or a shipped kernel"
    add("source", metavar="SOURCE", help=words, nargs="?" if command == "record" else None)
    add("-k", "--kernel", default="", help="a kernel's name, or a part that only one has")
    add("-p", "--probe", default="block_sched", help="presets or probe files, joined by commas")
    add("-d", "--device", default="auto", help="auto, sim, sim:a10, sim:h200, sim:t4, cuda, cuda:N")
    add("--link", action="append", default=[], metavar="FILE", help="a further source; repeatable")
    add("--launch", type=count, metavar="N", help="watch the program's launch N, from 0")
    _add_given(parser)
    add("--cuda-home", metavar="DIR", help="a CUDA toolkit to take nvcc and ptxas from")
    add("--nvcc-flags", metavar="FLAGS", default="", help="further flags: --nvcc-flags=-DTILE=16")
    add(
        "--timeout",
        type=above_zero,
        default=10.0,
        metavar="S",
        help="longest launch (default 10 s)",
    )
    add(
        "--plain-every",
        type=positive,
        default=16,
        metavar="N",
        help="on a GPU, time a plain launch after every N probed ones (default 16)",
    )
    add(
        "--max-rate",
        type=above_zero,
        default=0.0,
        metavar="N",
        help="most launches a second on a GPU",
    )
    add(
        "--map-limit",
        type=memory_bytes,
        default=DEFAULT_MAP_LIMIT,
        metavar="BYTES",
        help="most memory for a probe's maps: 512M, 4G (default 1G)",
    )
    parser.set_defaults(callback="", no_callback=False, callback_timeout=SECONDS)
    return parser


def _add_given(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a launch without running the program")
    add = group.add_argument
    add("--no-run", action="store_true", help="take launches from these flags or SOURCE's TOML")
    add("--grid", default="", metavar="X,Y,Z", help="blocks: 32,43; sizes by name: 'cdiv(N,32)'")
    add("--block", default="", metavar="X,Y,Z", help="threads of a block")
    add("--shared", default="", metavar="BYTES", help="dynamic shared memory")
    add(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an argument by name or position: M=1024, A=f32[M*M]:uniform",
    )


def watch_parser(command: str) -> argparse.ArgumentParser:
    parser = source_parser(command)
    more = "further sources to switch to with tab, and to compare with"
    parser.add_argument("others", nargs="*", default=[], metavar="SOURCE", help=more)
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.add_argument("--no-picker", action="store_true", help="start watching at once")
    parser.add_argument(
        "--screenshots", default="screenshots", metavar="DIR", help="where c saves (screenshots/)"
    )
    parser.add_argument("--kiosk", action="store_true", help="show every probe by turns")
    parser.add_argument(
        "--kiosk-seconds",
        type=above_zero,
        default=12.0,
        metavar="S",
        help="how long each is shown (default 12)",
    )
    parser.set_defaults(launches=3, json=False, picture="", lines=False, ncu=False)
    _add_callback(parser)
    return parser


def report_parser(command: str) -> argparse.ArgumentParser:
    parser = source_parser(command)
    parser.add_argument("-n", "--launches", type=positive, default=3, help="default 3")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--lines", action="store_true", help="print the figures of every source line"
    )
    parser.add_argument(
        "--ncu", action="store_true", help="on a GPU, print Nsight Compute's counters beside ours"
    )
    parser.add_argument(
        "--picture",
        metavar="FILE",
        default="",
        help="save a memory access timeline (-p dmat) as .svg or .png",
    )
    _add_callback(parser)
    return parser


def record_parser(command: str) -> argparse.ArgumentParser:
    parser = source_parser(command)
    parser.usage = (
        "gpuwatch record [options] SOURCE [-- ARGS...]\n"
        "       gpuwatch record [options] -- CMD ARGS..."
    )
    parser.add_argument(
        "-n", "--launches", type=positive, default=10, help="default 10, of a program all"
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", default="", help="the folder (default trace/<time>)"
    )
    parser.add_argument(
        "--range",
        type=launch_range,
        metavar="A:B",
        help="of a program (-- CMD): only launches A to B of a kernel, from 0",
    )
    _add_callback(parser)
    return parser


def replay_parser(command: str) -> argparse.ArgumentParser:
    parser = base_parser(command)
    add = parser.add_argument
    add("source", metavar="DIR", help="a trace folder")
    add("-k", "--kernel", default="", help="one of its kernels, by a name or a part of one")
    add("--launch", type=count, metavar="N", help="without a terminal: which launch, from 0")
    add("--json", action="store_true", help="without a terminal: print JSON")
    add("--ascii", action="store_true", help="draw with ASCII characters only")
    parser.set_defaults(picture="", lines=False)
    _add_callback(parser)
    return parser


def export_parser(command: str) -> argparse.ArgumentParser:
    parser = base_parser(command)
    add = parser.add_argument
    add("source", metavar="DIR", help="a trace folder, or one of its result files")
    add("--to", required=True, choices=FORMATS, help="the form")
    add("-o", "--output", metavar="FILE", default="", help="default: the folder's name, here")
    add("-k", "--kernel", default="", help="one of its kernels, by a name or a part of one")
    add("--launch", type=count, metavar="N", help="only this launch, from 0")
    return parser


def compare_parser(command: str) -> argparse.ArgumentParser:
    parser = source_parser(command)
    add = parser.add_argument
    add("after", metavar="AFTER", help="what to compare it with; either may be a trace")
    add("--after-kernel", metavar="NAME", help="its kernel (default: as -k)")
    add("-n", "--launches", type=positive, default=9, help="of each source (default 9)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    return parser


def _add_callback(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("analysis of the last recorded launch by a program")
    add = group.add_mutually_exclusive_group().add_argument
    add("--callback", metavar="FILE", default="", help="a Python file; executed")
    add("--no-callback", action="store_true", help="not even the one that ships with the preset")
    group.add_argument(
        "--callback-timeout",
        type=above_zero,
        default=SECONDS,
        metavar="S",
        help=f"longest run of it (default {SECONDS:g} s)",
    )


def callback_of(given: argparse.Namespace) -> str | None:
    """The callback's file, "" for the one that ships with the preset, None for none. Raises
    UserError when there is no such file."""
    if given.callback:
        check_callback(Path(given.callback))
    return None if given.no_callback else given.callback


def listing_parser(command: str) -> argparse.ArgumentParser:
    parser = source_parser(command)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def ptx_parser(command: str) -> argparse.ArgumentParser:
    parser = source_parser(command)
    parser.add_argument("--diff", action="store_true", help="mark what was woven in")
    parser.add_argument("--context", type=count, default=3, help="lines around it (default 3)")
    return parser


def options_of(given: argparse.Namespace) -> Options:
    """Raises UserError for flags that cannot be split into words, and for a callback that is not
    there."""
    return Options(
        source=find_source(given.source),
        device=given.device,
        kernel=given.kernel,
        probe=given.probe,
        arguments=given.arguments,
        nvcc_flags=_split_flags(given.nvcc_flags),
        cuda_home=given.cuda_home,
        timeout=given.timeout,
        link=tuple(given.link),
        launch=given.launch,
        no_run=given.no_run,
        grid=given.grid,
        block=given.block,
        shared=given.shared,
        values=tuple(given.arg),
        plain_every=given.plain_every,
        max_rate=given.max_rate,
        map_limit=given.map_limit,
        others=tuple(find_source(name) for name in getattr(given, "others", ())),
        callback=callback_of(given),
        callback_timeout=given.callback_timeout,
    )


def dim3(text: str) -> tuple[int, int, int]:
    """Up to three whole numbers of at least 1, separated by commas or x; for argparse."""
    parts = text.replace("x", ",").split(",")
    if not 1 <= len(parts) <= 3 or not all(part.isdecimal() and int(part) for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not one to three numbers, such as 32,43")
    x, y, z = (*map(int, parts), 1, 1)[:3]
    return x, y, z


def said_flags(given: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """Those of the flags of these destinations that the command line has."""
    return [f"--{name.replace('_', '-')}" for name in names if name in given.said]


def launch_range(text: str) -> tuple[int, int | None]:
    """Two numbers A:B, either of which may be left out, the last one then being None; for
    argparse."""
    first, colon, last = text.partition(":")
    if not colon or not (first or "0").isdecimal() or not (last or "0").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not two numbers, such as 10:19")
    low, high = int(first or 0), int(last) if last else None
    if high is not None and high < low:
        raise argparse.ArgumentTypeError(f"{text!r} has no launch in it")
    return low, high


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def count(text: str) -> int:
    """A whole number of at least 0; for argparse."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return int(text)


def above_zero(text: str) -> float:
    """A finite number above 0; for argparse."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def memory_bytes(text: str) -> int:
    """A number of bytes, such as 512M; for argparse."""
    number = text.lower().removesuffix("b").removesuffix("i")
    unit = number[-1:] if number[-1:] in _UNITS else ""
    digits = number.removesuffix(unit)
    if not digits.isdecimal() or not int(digits):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes, such as 512M")
    return int(digits) * _UNITS[unit]


def _split_flags(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as problem:
        raise UserError(
            f"--nvcc-flags {text!r} cannot be split into words: {problem}",
            hint="close every quote",
        ) from problem


def find_source(name: str) -> str:
    """`name`, the shipped kernel that it names from any folder, or the PTX of the folder of a
    stored launch that it names."""
    stored = stored_source(Path(name))
    if stored is not None or Path(name).exists():
        return str(stored or name)
    shipped = folder("kernels") / Path(name).name
    known = name in (shipped.name, shipped.stem, f"kernels/{shipped.name}")
    for candidate in (shipped, shipped.with_suffix(".cu")):
        if known and candidate.is_file():
            return str(candidate)
    return name
