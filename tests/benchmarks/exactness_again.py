"""The table of exactness anew from its figures, with reasons out of what nvcc and ptxas make here.

    python tests/benchmarks/exactness_again.py [OUTPUT.md] [DEVICE]

OUTPUT.md is exactness.md beside this file unless given, its figures are in OUTPUT.json, and both
are written anew. DEVICE, of which only the architecture counts, is sim:h200 unless given. Needs
nvdisasm and the version of the toolkit that the figures were taken with.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from exactness_file import read
from exactness_gpu import PROGRAMS, bare_name
from exactness_static import Marks, static_of

from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session

HERE = Path(__file__).parent
Static = tuple[Marks, dict[str, int]]


def found_in(source: Path, device: str) -> Iterator[tuple[str, Static]]:
    """Of each kernel that the program launches, under its name in the table."""
    session = Session(Options(str(source), device=device, timeout=60.0))
    try:
        launched = [one for one in session.kernels() if one.launches]
        for one in launched:
            name = source.stem if len(launched) == 1 else bare_name(one.demangled)
            yield name, static_of(session.program, one.mangled)
    finally:
        session.close()


def main() -> None:
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "exactness.md"
    device = sys.argv[2] if len(sys.argv) > 2 else "sim:h200"
    record = read(output.with_suffix(".json"))
    found = {name: each for source in PROGRAMS for name, each in found_in(source, device)}
    counted = [
        replace(one, marked=found[one.name][0], sizes=found[one.name][1]) for one in record.counted
    ]
    replace(record, counted=counted).write(output)


if __name__ == "__main__":
    main()
