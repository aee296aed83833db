"""The source that PTX says it came from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from gpuwatch.engine.listing import FILE, LOC


def source_of(ptx: str) -> tuple[Path, str]:
    """The file that most `.loc` directives name, and its text: "" where there is none, or it is
    not there any more."""
    files = dict(FILE.findall(ptx))
    named = Counter(found[1] for found in map(LOC.match, ptx.split("\n")) if found)
    for number, _ in named.most_common():
        path = Path(files.get(number, ""))
        if path.is_file():
            try:
                return path, path.read_text(errors="replace")
            except OSError:
                continue
    return Path(), ""
