"""Which rows of a table are shown, and in what order: filter, sorting, frozen order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.filtering import Filter, FilterError
from gpuwatch.analysis.ordering import Given, Order, Ordering, carried_over
from gpuwatch.tui.record_table import RecordTable
from gpuwatch.tui.warp_columns import default_sort, starts_descending


class Arrangement:
    """Rows of the newest table.

    A filter stays when another table comes; `misfit` says why it cannot be applied to that one,
    and all rows are shown then. A frozen order keeps both rows and order until it is thawed:
    later launches change only the values.
    """

    def __init__(self) -> None:
        self.table: RecordTable | None = None
        self.order: Order | None = None
        self.sort = ""
        self.descending = True
        self.filter: Filter | None = None
        self.misfit: FilterError | None = None
        self._frozen: NDArray[np.int64] | None = None
        """Identities in order."""

    @property
    def frozen(self) -> bool:
        return self._frozen is not None

    def take(self, table: RecordTable | None) -> None:
        """The table of another launch."""
        before, self.table = self.table, table
        if table is None:
            self.order = None
            return
        if before is None or (before.unit, before.map) != (table.unit, table.map):
            self._frozen = None
        if self.sort not in table.columns:
            self._frozen = None
            self.sort = default_sort(table)
            self.descending = starts_descending(self.sort)
        if self._frozen is None:
            self._arrange(table)
        elif before is None or not np.array_equal(before.ids, table.ids):
            self.order = Given(carried_over(self._frozen, table.ids))

    def sort_by(self, title: str, descending: bool) -> None:
        self.sort, self.descending = title, descending
        self._again()

    def set_filter(self, wanted: Filter | None) -> None:
        self.filter = wanted
        self._again()

    def freeze(self, wanted: bool) -> None:
        """Keeps rows and order as they are, or lets them follow the values again."""
        self._frozen = None
        if self.table is None or self.order is None:
            return
        if not wanted:
            self._arrange(self.table)
            return
        rows = self.order.rows(0, len(self.order))
        self._frozen = self.table.ids[rows]
        self.order = Given(rows)

    def _again(self) -> None:
        frozen = self.frozen
        if self.table is not None:
            self._arrange(self.table)
            if frozen:
                self.freeze(True)

    def _arrange(self, table: RecordTable) -> None:
        rows: NDArray[np.int64] | None = None
        self.misfit = None
        if self.filter is not None:
            try:
                rows = self.filter.rows(table.by_lower_name(), table.grid)
            except FilterError as fault:
                self.misfit = fault
        values = table.columns[self.sort]
        self.order = Ordering(values, descending=self.descending, among=rows)
