"""What to say of a position that matches nothing in a kernel."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

from gpuwatch.errors import UserError
from gpuwatch.instrument.positions import label_of, line_of
from gpuwatch.instrument.source_lines import SourceLines, main_file
from gpuwatch.probe.language import SEPARATOR
from gpuwatch.probe.model import Probe
from gpuwatch.ptx.model import Function, Instruction, Label, Loc

_SHOWN = 8


class UnmatchedError(UserError):
    """A position that matches nothing; `wanted` says in words what the kernel lacks."""

    wanted = ""


def unmatched(probe: Probe, functions: Sequence[Function], unreached: int) -> UserError:
    """The error, with what the kernel (the first of `functions`) does have as a hint; `unreached`
    is the number of instructions that match but that no thread ever passes."""
    if unreached:
        return UserError(
            f"probe {probe.name}: no thread comes by behind {probe.position} in "
            f"{functions[0].name}, where it always jumps or ends",
            hint="probe in front of it, with before=True",
            at=probe.at,
        )
    if label := label_of(probe.position):
        wanted, hint = f"label {label}", _labels(functions, label)
    elif line := line_of(probe.position):
        wanted, hint = f"code of line {line}", _lines(functions, line)
    else:
        wanted = " or ".join(SEPARATOR.split(probe.position))
        hint = _opcodes(functions, probe.position)
    missing = UnmatchedError(
        f"probe {probe.name}: position {probe.position} matches nothing in {functions[0].name}",
        hint=hint,
        at=probe.at,
    )
    missing.wanted = wanted
    return missing


def _instructions(functions: Iterable[Function]) -> Iterable[Instruction]:
    return (one for each in functions for one in each.body or () if isinstance(one, Instruction))


def _labels(functions: Sequence[Function], wanted: str) -> str:
    names = [one.name for each in functions for one in each.body or () if isinstance(one, Label)]
    if not names:
        return "the kernel has no labels"
    near = difflib.get_close_matches(wanted, names, _SHOWN) or names[:_SHOWN]
    return f"it has the labels {', '.join(near)}{_more(len(set(names)) - len(near))}"


def _lines(functions: Sequence[Function], wanted: int) -> str:
    file = main_file(functions[0])
    if not file:
        return "it has no line information: compile with -lineinfo"
    lines: set[int] = set()
    for each in functions:
        met = SourceLines(file)
        for one in each.body or ():
            if isinstance(one, Loc):
                met.see(one)
                lines.update(met.lines)
    near = sorted(sorted(lines, key=lambda line: abs(line - wanted))[:_SHOWN])
    shown = ", ".join(map(str, near))
    return f"it has code of the lines {shown}{_more(len(lines) - len(near))}"


def _opcodes(functions: Sequence[Function], position: str) -> str:
    counts = Counter(".".join(one.tokens) for one in _instructions(functions))
    labels = {one.name for each in functions for one in each.body or () if isinstance(one, Label)}
    if position in labels:
        return f'it has a label of that name: write "label:{position}"'
    near = _likely(position, counts)
    shown = ", ".join(f"{name} ({counts[name]})" for name in near[:_SHOWN])
    return f"it has {shown}{_more(len(near) - _SHOWN)}" if shown else "it has no instructions"


def _likely(position: str, counts: Counter[str]) -> list[str]:
    """Opcodes like those of the position, most alike first; all, most frequent first, if none."""
    wanted = SEPARATOR.split(position)
    firsts = {name.split(".")[0] for name in counts}
    alike = {first for one in wanted for first in _close(one.split(".")[0], firsts)}
    likely = [name for name, _ in counts.most_common() if name.split(".")[0] in alike]
    if not likely:
        return [name for name, _ in counts.most_common()]
    return sorted(likely, key=lambda name: -max(_likeness(name, one) for one in wanted))


def _close(word: str, words: Iterable[str]) -> list[str]:
    known = sorted(words)
    return [word] if word in known else difflib.get_close_matches(word, known, 3, 0.5)


def _likeness(name: str, wanted: str) -> float:
    return difflib.SequenceMatcher(None, name[: len(wanted) + 2], wanted).ratio()


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""
