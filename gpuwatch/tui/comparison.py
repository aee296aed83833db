"""The present against a pinned baseline."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuwatch.engine.frame import Frame
from gpuwatch.tui.record_table import DELTA, RecordTable, table_of


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """A frame that others are compared with, and its table; `pinned` where the user chose it."""

    frame: Frame
    table: RecordTable | None
    pinned: bool = False

    @staticmethod
    def of(frame: Frame, *, pinned: bool = False) -> Baseline:
        return Baseline(frame, table_of(frame), pinned)

    def pinned_in(self, build: int) -> bool:
        """Whether the user chose it while this build was shown."""
        return self.pinned and self.frame.build == build


def speedup(before: Frame, now: Frame) -> float | None:
    """Kernel time of the baseline's plain build over that of the present one, so above 1 is
    faster; None where either is not known."""
    if before.seconds_plain <= 0 or now.seconds_plain <= 0:
        return None
    return before.seconds_plain / now.seconds_plain


def speed_text(ratio: float, times: str) -> str:
    """ "1.43x faster", "0.91x" for what has become slower, with the sign `times` for x."""
    return f"{ratio:.2f}{times} faster" if ratio >= 1.005 else f"{ratio:.2f}{times}"


def with_delta(table: RecordTable | None, baseline: Baseline | None) -> RecordTable | None:
    """`table` with a column of what each row measured more than the baseline did, in per cent.

    A row is compared with the same warp, thread or block where the launches have one shape, and
    with the baseline's median where they do not; NaN where the baseline has nothing.
    """
    if table is None or baseline is None or not table.measured:
        return table
    before = baseline.table
    name = table.measured[0]
    if before is None or name not in before.columns or len(before) == 0 or DELTA in table.columns:
        return table
    if before.unit != table.unit:
        return table
    now = table.columns[name].astype(np.float64)
    then = _former(table, before, name, same=before.shape == table.shape)
    delta = np.full(len(now), np.nan)
    np.divide(100.0 * (now - then), then, out=delta, where=then > 0)
    return replace(table, columns={**table.columns, DELTA: delta})


def _former(
    table: RecordTable, before: RecordTable, name: str, *, same: bool
) -> NDArray[np.float64]:
    values = before.columns[name].astype(np.float64)
    if not same:
        return np.full(len(table), np.median(values))
    if np.array_equal(before.ids, table.ids):
        return values
    place = np.minimum(np.searchsorted(before.ids, table.ids), len(before) - 1)
    return np.where(before.ids[place] == table.ids, values[place], np.nan)
