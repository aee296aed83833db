"""Which files an export writes; each launch is read when its turn comes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.trace.export.chrome import write_chrome
from gpuwatch.trace.export.parquet import write_parquet
from gpuwatch.trace.export.perfetto import write_perfetto
from gpuwatch.trace.export.spans import timed_map
from gpuwatch.trace.export.tables import write_csv, write_json, write_npz
from gpuwatch.trace.folder import Trace
from gpuwatch.trace.reading import LaunchRecords, records_of

_PER_MAP = {"csv": (".csv", write_csv), "parquet": (".parquet", write_parquet)}
_TABLES = {"json": (".json", write_json), "npz": (".npz", write_npz)}
_TIMELINES = {"perfetto": (".pftrace", write_perfetto), "chrome": (".trace.json", write_chrome)}
_SUFFIXES = {
    form: suffix for known in (_PER_MAP, _TABLES, _TIMELINES) for form, (suffix, _) in known.items()
}
_MISTAKES = (FileNotFoundError, NotADirectoryError, PermissionError)
"""What comes of a place where nobody can write; a full disk does not."""
FORMATS = ("perfetto", "chrome", "parquet", "csv", "json", "npz")


@dataclass(frozen=True, slots=True)
class Exported:
    """`count` is the number of rows, or of slices of a timeline."""

    path: Path
    count: int


def export(
    trace: Trace, numbers: Sequence[int], form: str, target: Path | None = None
) -> list[Exported]:
    """Writes the launches `numbers`, all of one kernel, as `form`, one of FORMATS.

    CSV and Parquet have a file for each map: with several, the map's name stands before the
    suffix of `target`. A `target` without one gets the form's; no `target` means the trace
    folder's name with the form's suffix, in the current folder. Raises UserError for a file that
    exists, for what the form needs and the trace or the machine lacks, and for damaged files.
    """
    suffix = _SUFFIXES[form]
    target = target or Path(trace.path.resolve().name + suffix)
    facts = trace.launch(numbers[0]).kernel
    if form in _PER_MAP:
        _, of_map = _PER_MAP[form]
        found = []
        for map_ in facts.maps:
            path = _path(target, suffix, map_.name if len(facts.maps) > 1 else "")
            launches = _launches(trace, numbers)
            write = partial(of_map, facts=facts, map_=map_, launches=launches)
            found.append(_written(path, write))
        return found
    if form in _TIMELINES:
        timed_map(facts)
    _, whole = (_TABLES | _TIMELINES)[form]
    launches = _launches(trace, numbers)
    write = partial(whole, facts=facts, launches=launches)
    return [_written(_path(target, suffix, ""), write)]


def _launches(trace: Trace, numbers: Sequence[int]) -> Iterator[LaunchRecords]:
    return (records_of(trace.launch(number)) for number in numbers)


def _path(target: Path, suffix: str, map_: str) -> Path:
    ending = suffix
    stem = target
    if target.name.endswith(suffix):
        stem = target.with_name(target.name.removesuffix(suffix))
    elif target.suffix:
        stem, ending = target.with_suffix(""), target.suffix
    safe = "".join(one if one.isalnum() or one in "_-" else "_" for one in map_)
    return stem.with_name(f"{stem.name}.{safe}{ending}" if safe else f"{stem.name}{ending}")


def _written(path: Path, write: Callable[[Path], int]) -> Exported:
    """Writes under a temporary name first, so that the file is whole or not there."""
    if os.path.lexists(path):
        raise UserError(f"{path} exists", hint="name another file with -o")
    unfinished = path.with_name(f".{path.name}.partial")
    try:
        count = write(unfinished)
        unfinished.replace(path)
    except OSError as problem:
        raise UserError(
            f"cannot write {path}: {problem.strerror or problem}",
            hint="name a file on a disk with room, that you may write to, with -o",
            status=2 if isinstance(problem, _MISTAKES) else 1,
        ) from problem
    finally:
        if os.path.lexists(unfinished):
            unfinished.unlink()
    return Exported(path, count)
