"""The texts that a source pane shows: source, probed PTX, and which line comes from which."""

from __future__ import annotations

import re
from pathlib import Path

from gpuwatch.engine.build import Build
from gpuwatch.engine.frame import Listing

FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"')
"""Number and name of a source of PTX."""
LOC = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s")
"""Number of the file, and line in it, of what follows."""


def listing_of(build: Build, mangled: str, probe: str) -> Listing:
    """Of a pair that is attached."""
    woven = build.probeds[mangled, probe].woven
    source = Path(build.program.options.source)
    is_text = source.suffix != "" and source.is_file()
    return Listing(
        build=build.number,
        kernel=mangled,
        probe=probe,
        source=source.read_text(errors="replace") if is_text else "",
        ptx=woven.text,
        inserted=woven.inserted_lines,
        lines=source_lines(woven.text, source),
        sites=tuple((site.source_line, site.opcode) for site in woven.sites),
    )


def source_lines(ptx: str, source: Path) -> tuple[int, ...]:
    """For each line of `ptx` the line of `source` that it comes from, 0 for none. PTX that is its
    own source comes from nowhere."""
    numbers = {number for number, name in FILE.findall(ptx) if Path(name).name == source.name}
    lines, current = [], 0
    for text in ptx.split("\n"):
        found = LOC.match(text)
        if found:
            current = int(found[2]) if found[1] in numbers else 0
        elif text.startswith("}"):
            current = 0
        lines.append(current)
    return tuple(lines)
