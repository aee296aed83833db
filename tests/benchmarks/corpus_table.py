"""Which kernels of the corpus take which probes.

    python tests/benchmarks/corpus_table.py [-d DEVICE] [-j JOBS] [-v] [PROGRAM ...]

For each kernel and probe: woven, assembled by ptxas, run, outputs identical bit for bit to the
plain kernel's, and no record missing or dropped. -v adds a line for each pair that falls short.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))

import corpus_harness as corpus

SIGNS = {
    "absent": ".",
    "broken": "!",
    "refused": "-",
    "woven": "w",
    "assembled": "a",
    "ran": "X",
    "identical": "i",
}
LEGEND = (
    "+ identical, all records   i identical, records missing or dropped   X outputs differ\n"
    "a assembled, does not run   w woven, not assembled   - cannot be woven   ! broken\n"
    ". the kernel has nothing that the probe stands at (not counted)"
)


def pairs_of(program: str, device: str) -> list[corpus.Pair]:
    """All pairs of one program."""
    with corpus.opened(program, device) as session:
        return [
            corpus.attempt(session, kernel, mangled, probe)
            for kernel, mangled in corpus.kernels(session.program).items()
            for probe in corpus.probes()
        ]


def show(program: str, pairs: list[corpus.Pair], verbose: bool) -> None:
    print(f"{program}: {corpus.title(program)}", flush=True)
    for kernel in dict.fromkeys(pair.kernel for pair in pairs):
        row = [pair for pair in pairs if pair.kernel == kernel]
        marks = "".join(f"{'+' if one.good else SIGNS[one.stage]:>4}" for one in row)
        print(f"  {kernel:<40}{marks}")
        for one in row if verbose else ():
            if not one.good and one.stage != "absent":
                why = one.reason or f"{one.missing} missing, {one.dropped} dropped"
                print(f"      {one.probe}: {one.stage}: {why}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-d", "--device", default=corpus.DEVICE)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="programs at a time")
    parser.add_argument("programs", nargs="*")
    given = parser.parse_intermixed_args()
    print(LEGEND)
    for column, probe in enumerate(corpus.probes(), 1):
        print(f"column {column}: {corpus.short(probe)}")
    every: list[corpus.Pair] = []
    for program, result in corpus.each_in_its_own_process(
        pairs_of, given.programs or corpus.programs(), given.device, given.jobs
    ):
        if isinstance(result, str):
            print(f"{program}: {result}")
            continue
        show(program, result, given.verbose)
        every += [one for one in result if one.stage != "absent"]
    reached = Counter(corpus.STAGES.index(one.stage) for one in every)
    woven, assembled, ran, same = (
        sum(n for stage, n in reached.items() if stage >= least) for least in (3, 4, 5, 6)
    )
    kernels = sum(one.probe == corpus.short(corpus.probes()[0]) for one in every)
    print(
        f"{kernels} kernels, {len(every)} pairs: {woven} woven, {assembled} assembled, "
        f"{ran} run, {same} identical, {sum(one.good for one in every)} with every record"
    )


if __name__ == "__main__":
    main()
