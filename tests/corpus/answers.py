"""What a device answers to the corpus: outputs, records and per-warp counts of each kernel.

    python tests/corpus/answers.py record -d cuda      writes tests/corpus/answers/PROGRAM.json
    python tests/corpus/answers.py check [-d sim:h200] compares with what was recorded

-o names another folder of answers. Both take names of programs; without any, all of the corpus.
`check` ends with status 1 when a device answers something else. Outputs of kernels that use
approximate instructions, or products and sums that ptxas may fuse, are recorded but not compared,
nor are counts that depend on which warp comes first; everything else must be equal, bit for bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import corpus_harness as corpus

from gpuwatch.device.base import Device
from gpuwatch.device.sim.exactness import MATRICES, inexact
from gpuwatch.device.sim.linking import build_program
from gpuwatch.engine.attach import load_plain, load_probed
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.engine.readings import MapReader
from gpuwatch.errors import UserError
from gpuwatch.probe import load

FOLDER = corpus.HOME / "answers"
UNANSWERED = frozenset({"textures"})
"""Programs whose launches a GPU could not repeat: a texture is no buffer."""
TIMED = frozenset(
    {
        "spin_lock", "last_block", "hand_on", "swap_loop", "wide_swap", "aggregated",
        "breadth_first_step", "producer_consumer", "grid_barrier",
    }
)  # fmt: skip
"""Kernels in which who comes first decides what a warp does: their counts are not compared."""
PROBE = str(corpus.HOME / "probes" / "access_counts.py")
"""Counts accesses to memory, and their bytes, per warp."""

Answer = dict[str, Any]
"""Of one kernel: "outputs" (SHA-256 of each buffer, shortened), "exact", "identical", "records",
"missing", "dropped", and "counts" (by field, one number per warp); or "refused" with the reason."""


def answered(program: str, device: str) -> dict[str, Answer]:
    """The answers of `device`, by kernel. Raises UserError when the program cannot be captured."""
    return dict(each_answer(program, device))


def each_answer(program: str, device: str) -> Iterator[tuple[str, Answer]]:
    """The kernels of a program with their answers, one by one."""
    with corpus.watched(program, device) as (found, target):
        for name, mangled in corpus.kernels(found).items():
            try:
                yield name, _answer(found, target, mangled)
            except UserError as problem:
                yield name, {"refused": problem.message}
            except corpus.BUGS as bug:
                yield name, {"refused": f"{type(bug).__name__}: {bug}"}


def _answer(watched: WatchedProgram, device: Device, mangled: str) -> Answer:
    program = load(PROBE)
    plain = load_plain(watched, device, mangled)
    probed = load_probed(watched, device, plain, program)
    assert plain.results is not None
    try:
        sites = probed.woven.sites
        reader = MapReader(program, probed.layout, sites, plain.launch, device.info)
        reader.observe(probed.runner.loaded)
        reading = reader.reading()
        (figures,) = reading.maps
        return {
            "outputs": [
                hashlib.sha256(one.tobytes()).hexdigest()[:32] for one in plain.results.buffers
            ],
            "exact": _is_exact(watched, mangled),
            "identical": probed.outputs_identical,
            "records": reading.records,
            "missing": reading.missing,
            "dropped": reading.dropped,
            "counts": {name: column.tolist() for name, column in figures.columns.items()},
        }
    finally:
        probed.runner.loaded.close()
        plain.runner.loaded.close()


def _is_exact(watched: WatchedProgram, mangled: str) -> bool:
    """Whether the outputs of every device are to be the same, bit for bit. Sums of the matrix
    products of the corpus are small enough to be exact."""
    entry = next(one for one in watched.module.entries() if one.name == mangled)
    used = inexact(build_program(watched.module, entry).instructions)
    return {MATRICES}.issuperset(used)


def recorded(program: str, folder: Path = FOLDER) -> dict[str, Answer]:
    """What was recorded of a program, by kernel; empty where nothing was."""
    path = folder / f"{program}.json"
    return json.loads(path.read_text())["kernels"] if path.exists() else {}


def differences(name: str, found: Answer, known: Answer) -> list[str]:
    """In what a kernel's answer differs from the one recorded, a line each."""
    if "refused" in known or "refused" in found:
        return []
    lines = [
        f"{name}: {key} is {found[key]}, recorded was {known[key]}"
        for key in ("records", "missing", "dropped", "identical", "counts")
        if found[key] != known[key] and not (key == "counts" and name in TIMED)
    ]
    if not (found["exact"] and known["exact"]):
        return lines
    wrong = [k for k, pair in enumerate(zip(found["outputs"], known["outputs"], strict=True))
             if pair[0] != pair[1]]  # fmt: skip
    return [*lines, *(f"{name}: buffer {k} differs" for k in wrong)]


def _record(program: str, answers: dict[str, Answer], device: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kernels = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(answer, separators=(',', ':'))}"
        for name, answer in answers.items()
    )
    text = f'{{"device": {json.dumps(device)}, "kernels": {{\n{kernels}\n}}}}\n'
    (folder / f"{program}.json").write_text(text)


def _check(program: str, answers: dict[str, Answer], folder: Path) -> tuple[int, list[str]]:
    known = recorded(program, folder)
    both = [name for name in answers if name in known]
    compared = [n for n in both if "refused" not in answers[n] and "refused" not in known[n]]
    lines = [line for name in both for line in differences(name, answers[name], known[name])]
    return len(compared), lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("record", "check"))
    parser.add_argument("-d", "--device", default=corpus.DEVICE)
    parser.add_argument("-o", "--folder", type=Path, default=FOLDER)
    parser.add_argument("-j", "--jobs", type=int, default=1, help="programs at a time")
    parser.add_argument("programs", nargs="*")
    given = parser.parse_intermixed_args()
    total, wrong, failed = 0, 0, 0
    names = given.programs or [one for one in corpus.programs() if one not in UNANSWERED]
    for program, answers in corpus.each_in_its_own_process(
        answered, names, given.device, given.jobs
    ):
        if isinstance(answers, str):
            print(f"{program}: {answers}", flush=True)
            failed += 1
            continue
        refused = [f"{n}: {a['refused']}" for n, a in answers.items() if "refused" in a]
        if given.what == "record":
            _record(program, answers, given.device, given.folder)
            compared, lines = len(answers) - len(refused), list[str]()
        else:
            compared, lines = _check(program, answers, given.folder)
        lines += [f"{n}: outputs changed by the probe" for n, a in answers.items()
                  if not a.get("identical", True)]  # fmt: skip
        total, wrong = total + compared, wrong + len(lines)
        print(f"{program}: {compared} kernels {given.what}ed", flush=True)
        print("".join(f"  {line}\n" for line in (*refused, *lines)), end="", flush=True)
    print(f"{total} kernels {given.what}ed, {wrong} differences, {failed} programs failed")
    return 1 if wrong or failed else 0


if __name__ == "__main__":
    sys.exit(main())
