"""The figures of the table of exactness as JSON: names once, then a row of numbers a kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exactness_table import COUNTERS, GROUPS, Counted, table

METRICS = tuple(dict.fromkeys(one.metric for group in GROUPS for one in group.columns))


@dataclass(frozen=True, slots=True)
class Record:
    """`how` is where and with what the figures were taken; `problems` what could not be counted."""

    how: str
    counted: Sequence[Counted]
    problems: Sequence[str] = ()

    def write(self, output: Path) -> None:
        """The table to `output`, the figures beside it with the suffix .json."""
        lines = table(self.counted, self.problems, self.how)
        output.write_text("\n".join(lines) + "\n")
        rows = ",\n".join(f"  {json.dumps(_row(one))}" for one in self.counted)
        names = {"counters": COUNTERS, "metrics": METRICS}
        head = {"how": self.how, "problems": list(self.problems), **names}
        parts = [f' "{name}": {json.dumps(value)}' for name, value in head.items()]
        parts.append(f' "kernels": [\n{rows}\n ]')
        output.with_suffix(".json").write_text("{\n" + ",\n".join(parts) + "\n}\n")


def read(path: Path) -> Record:
    stored = json.loads(path.read_text())
    kernels = [
        Counted(
            name=one["name"],
            counters=_named(stored["counters"], one["counters"]),
            metrics=_named(stored["metrics"], one["metrics"]),
            marked=one["marked"],
            sizes=one["sizes"],
            outputs_identical=one["outputs_identical"],
        )
        for one in stored["kernels"]
    ]
    return Record(stored["how"], kernels, stored["problems"])


def _row(one: Counted) -> dict[str, Any]:
    return {
        "name": one.name,
        "counters": [one.counter(name) for name in COUNTERS],
        "metrics": [one.metrics.get(name) for name in METRICS],
        "marked": dict(one.marked),
        "sizes": dict(one.sizes),
        "outputs_identical": one.outputs_identical,
    }


def _named(names: Sequence[str], values: Sequence[int | None]) -> Mapping[str, int]:
    pairs = zip(names, values, strict=True)
    return {name: value for name, value in pairs if value is not None}
