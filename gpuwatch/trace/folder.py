"""A trace folder as it is read. Nothing in it is trusted and nothing in it is executed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.trace import info, probe_text
from gpuwatch.trace.facts import KernelFacts
from gpuwatch.trace.foreign import ForeignProbe
from gpuwatch.trace.result import Result, open_result
from gpuwatch.trace.values import check_plain
from gpuwatch.trace.writer import KERNELS, RESULTS

_RESULT = re.compile(r"(\d+)(?:\.(\d+))?\.bin", re.ASCII)
_MOST_TEXT = 64 << 20
"""Bytes of a text file of a trace that are read."""


@dataclass(frozen=True, slots=True, eq=False)
class TraceLaunch:
    """One recorded launch and the kernel that it is of."""

    kernel: KernelFacts
    result: Result


class Trace:
    """`results` are its result files in order of time. Raises UserError for a folder that is no
    trace, and for files in it that are not as they should be."""

    def __init__(self, path: Path) -> None:
        self.path, self.results = _find(path)
        self._kernels = _own_kernels(self.path / KERNELS)
        self._foreign: ForeignProbe | None = None
        if not self._kernels:
            file = self.path / probe_text.NAME
            self._foreign = ForeignProbe(_toml(file), file)

    def launch(self, number: int) -> TraceLaunch:
        """Opens result file `number`, counted from 0."""
        result = open_result(self.results[number])
        if self._foreign is not None:
            result = replace(result, facts=replace(result.facts, number=number))
            return TraceLaunch(self._foreign.facts(result, self.path / KERNELS), result)
        kernel = self._kernels.get(result.facts.kernel)
        if kernel is None:
            known = ", ".join(self._kernels)
            raise result.wrong(f"it is of kernel {result.facts.kernel!r}; the trace has {known}")
        return TraceLaunch(kernel, result)


def is_trace(path: Path) -> bool:
    """Whether `path` looks like a trace folder, or like a result file of one."""
    folder = path.parent.parent if path.suffix == ".bin" else path
    return (folder / RESULTS).is_dir() and (folder / probe_text.NAME).is_file()


def _find(path: Path) -> tuple[Path, tuple[Path, ...]]:
    folder = path.parent.parent if path.suffix == ".bin" else path
    if not is_trace(path):
        what = "is no trace" if path.exists() else "does not exist"
        raise UserError(
            f"{path} {what}",
            hint=f"a trace is a folder with {probe_text.NAME} and {RESULTS}/, "
            "such as `gpuwatch record` writes",
        )
    if path != folder:
        return folder, (path,)
    found = [(match, one) for one in (folder / RESULTS).iterdir() if (match := _match(one))]
    if not found:
        raise UserError(f"{folder} has no results", hint="record at least one launch")
    return folder, tuple(one for _, one in sorted(found, key=lambda pair: _seconds(pair[0])))


def _match(path: Path) -> re.Match[str] | None:
    return _RESULT.fullmatch(path.name)


def _seconds(match: re.Match[str]) -> tuple[int, str]:
    return int(match[1]), match[2] or ""


def _own_kernels(folder: Path) -> dict[str, KernelFacts]:
    """By folder name; empty where another tool wrote the trace."""
    found = {}
    for path in sorted(folder.glob(f"*/{info.NAME}")):
        if not path.parent.name.isprintable():
            raise UserError(
                f"{folder} has a folder {path.parent.name!r}", hint="name it as it was recorded"
            )
        document = _own_info(path)
        if document is not None:
            found[path.parent.name] = info.read_info(document, path)
    return found


def _own_info(path: Path) -> Mapping[str, object] | None:
    text = _read(path)
    if not text.startswith(info.HEAD):
        return None
    document = _parse(text, path)
    if not info.is_info(document):
        raise UserError(f"{path} lacks the kernel's name or shape", hint="copy the trace again")
    return document


def _toml(path: Path) -> Mapping[str, object]:
    return _parse(_read(path), path)


def _parse(text: str, path: Path) -> Mapping[str, object]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise UserError(
            f"{path} is not TOML: {problem}", hint="it was altered: copy the trace again"
        ) from problem


def _read(path: Path) -> str:
    check_plain(path)
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_TEXT + 1)
    except OSError as problem:
        raise UserError(
            f"cannot read {path}: {problem.strerror}", hint="copy the trace again"
        ) from problem
    if len(content) > _MOST_TEXT:
        raise UserError(f"{path} is larger than {_MOST_TEXT:,} bytes", hint="it was altered")
    return content.decode("utf-8", "replace")
