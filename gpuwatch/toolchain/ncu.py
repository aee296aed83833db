"""Nsight Compute: finding it, running it on one launch of a program, reading what it counts."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.toolchain.process import Finished, run

_INSTALLED = Path("/opt/nvidia/nsight-compute")
_MISSING_HINT = (
    "install Nsight Compute (it is part of a CUDA toolkit, in CUDA_HOME/bin) or put it on PATH; "
    "gpuwatch's own figures need none"
)
_SHOWN = 2000
"""Characters of ncu's output in an error."""
_ERROR = re.compile(r"^==ERROR== (.*)", re.M)
_PROBLEMS: tuple[tuple[str, str, str], ...] = (
    (
        "ERR_NVGPUCTRPERM",
        "ncu may not read hardware counters here (ERR_NVGPUCTRPERM)",
        "run as root, or let every user read them: put `options nvidia "
        "NVreg_RestrictProfilingToAdminUsers=0` into a file in /etc/modprobe.d and reboot; "
        "a container needs --cap-add SYS_ADMIN; gpuwatch's own figures need no permission",
    ),
    (
        "ERR_NVGPUCTRINUSE",
        "another profiler holds the hardware counters",
        "end the other profiler, then try again",
    ),
    (
        "profiling is not supported on this device",
        "this ncu does not know the GPU",
        "install the Nsight Compute that came with the driver's CUDA, or a newer one",
    ),
    (
        "No kernels were profiled",
        "ncu saw no such launch of the program",
        "the program must make the launch on the GPU as it does under gpuwatch; choose another "
        "with -k and --launch",
    ),
)
"""What ncu says, what it means, what mends it."""


def find_ncu() -> Path:
    """ncu in CUDA_HOME, on PATH, or where its own installer puts it. Raises UserError."""
    home, on_path = os.environ.get("CUDA_HOME"), shutil.which("ncu")
    places = [Path(home) / "bin" / "ncu"] if home else []
    places += [Path(on_path)] if on_path else []
    places += [folder / "ncu" for folder in sorted(_INSTALLED.glob("*"), reverse=True)]
    found = next((one for one in places if one.is_file() and os.access(one, os.X_OK)), None)
    if found is None:
        raise UserError("there is no ncu", hint=_MISSING_HINT)
    return found


def count(
    tool: Path,
    command: Sequence[str | Path],
    metrics: Sequence[str],
    *,
    kernel: str = "",
    skip: int = 0,
    timeout: float,
    environment: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Runs `command` and counts the launch of `kernel` (mangled; any for "") behind `skip` others
    of it; gives each metric in its base unit, without those that ncu does not know. Raises
    UserError with what mends it when ncu cannot."""
    chosen = ["--kernel-name-base", "mangled", "--kernel-name", kernel] if kernel else []
    options = ["--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(metrics)]
    limits = ["--launch-skip", str(skip), "--launch-count", "1"]
    words = [tool, *options, *chosen, *limits, *command]
    done = run(words, timeout=timeout, environment=environment, hint=_MISSING_HINT)
    known = _without_unknown(done.output, metrics)
    if known and len(known) < len(metrics):
        return count(
            tool, command, known, kernel=kernel, skip=skip, timeout=timeout, environment=environment
        )
    if done.timed_out:
        raise UserError(
            f"ncu took longer than {timeout:g} s",
            detail=done.output[-_SHOWN:],
            hint="give the program smaller sizes after --",
        )
    found = parse(done.output, metrics)
    if not found:
        raise problem_of(done)
    return found


def _without_unknown(output: str, metrics: Sequence[str]) -> list[str]:
    """The metrics that no error of ncu names."""
    named = " ".join(_ERROR.findall(output))
    return [metric for metric in metrics if metric not in named]


def parse(output: str, metrics: Sequence[str]) -> dict[str, float]:
    """The metrics of the first launch in a `--page raw` table: a row of names, one of units, one
    for each launch. What the program printed may stand before it; {} for no table."""
    start = re.search(r'^"ID",', output, re.M)
    if start is None:
        return {}
    rows = list(csv.reader(io.StringIO(output[start.start() :])))
    if len(rows) < 3 or len(rows[2]) != len(rows[0]):
        return {}
    cells = dict(zip(rows[0], rows[2], strict=True))
    return {
        name: float(cells[name].replace(",", ""))
        for name in metrics
        if _is_number(cells.get(name, ""))
    }


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?[\d,]*\.?\d+(?:e[-+]?\d+)?", text) is not None


def problem_of(done: Finished) -> UserError:
    """Why ncu counted nothing."""
    for sign, message, hint in _PROBLEMS:
        if sign in done.output:
            return UserError(message, hint=hint)
    said = _ERROR.findall(done.output)
    words = said[0].strip() if said else f"it ended with status {done.status}"
    return UserError(
        f"ncu counted nothing: {words}",
        detail=done.output[-_SHOWN:],
        hint="gpuwatch's own figures need no ncu",
    )
