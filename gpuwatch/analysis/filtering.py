"""Table filters: conditions over the columns of a table, such as `sm == 3 and elapsed > p99`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.filter_syntax import (
    COMPUTE,
    Arithmetic,
    Comparison,
    FilterError,
    Logic,
    Name,
    Node,
    Number,
    Place,
    Statistic,
    parse,
)

__all__ = ["Filter", "FilterError", "bucket_condition"]

Columns = Mapping[str, NDArray[Any]]
Dim3 = tuple[int, int, int]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPUTE: dict[str, Callable[[Any, Any], Any]] = {
    **COMPUTE,
    "/": np.true_divide,
    "%": np.remainder,
}
"""With those two that have a value by zero, too."""
_BEYOND_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition that was read once and is applied to the table of every launch."""

    text: str
    _tree: Node

    @staticmethod
    def of(text: str, names: Collection[str]) -> Filter:
        """Reads `text`, a condition over columns called `names` in lower case.

        Raises FilterError with the column of the fault.
        """
        return Filter(text, parse(text, names))

    def rows(self, columns: Columns, grid: Dim3) -> NDArray[np.int64]:
        """Ascending numbers of the rows for which the condition holds.

        `columns` are arrays of one length, by lower-case name. Positions as (3,1) are those of
        `grid`. A comparison with NaN, or with a statistic of no rows, does not hold. Raises
        FilterError where the condition names a column that `columns` lacks.
        """
        length = len(next(iter(columns.values()))) if columns else 0
        with np.errstate(all="ignore"):
            truth = np.broadcast_to(_truth(self._tree, columns, grid), (length,))
        return np.flatnonzero(truth)


def bucket_condition(name: str, low: float | None, high: float | None) -> str:
    """The filter for values from `low` up to but without `high`; None for no such end."""
    ends = ((">=", low), ("<", high))
    return " and ".join(f"{name} {sign} {_plain(end)}" for sign, end in ends if end is not None)


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _truth(node: Node, columns: Columns, grid: Dim3) -> Any:
    if isinstance(node, Logic):
        parts = [_truth(part, columns, grid) for part in node.parts]
        if node.operator == "not":
            return np.logical_not(parts[0])
        join = np.logical_and if node.operator == "and" else np.logical_or
        truth = parts[0]
        for part in parts[1:]:
            truth = join(truth, part)
        return truth
    assert isinstance(node, Comparison)
    left, right = _sides(node, columns, grid)
    return _COMPARE[node.operator](left, right)


def _sides(pair: Comparison, columns: Columns, grid: Dim3) -> tuple[Any, Any]:
    """Both sides; the one with statistics last, because they are taken of the other."""
    of_nothing = np.empty(0)
    if _has_statistic(pair.left):
        right = _value(pair.right, columns, grid, of_nothing)
        return _value(pair.left, columns, grid, right), right
    left = _value(pair.left, columns, grid, of_nothing)
    return left, _value(pair.right, columns, grid, left)


def _has_statistic(node: Node) -> bool:
    if isinstance(node, Arithmetic):
        return _has_statistic(node.left) or _has_statistic(node.right)
    return isinstance(node, Statistic)


def _value(node: Node, columns: Columns, grid: Dim3, other: Any) -> Any:
    match node:
        case Number():
            return node.value
        case Name():
            if node.name not in columns:
                raise FilterError(f"no column {node.name!r} in this table", node.column)
            return columns[node.name]
        case Statistic():
            return _statistic(node.name, other)
        case Place():
            x, y, z = (*node.parts, 0)[:3]
            inside = x < grid[0] and y < grid[1] and z < grid[2]
            return x + grid[0] * (y + grid[1] * z) if inside else -1
        case Arithmetic():
            left = _value(node.left, columns, grid, other)
            right = _value(node.right, columns, grid, other)
            return _COMPUTE[node.operator](_roomy(left), _roomy(right))
    raise AssertionError(node)


def _statistic(name: str, values: NDArray[Any]) -> float:
    if len(values) == 0:
        return float("nan")
    if name in ("min", "max"):
        least_or_greatest: float = getattr(values, name)().item()
        return least_or_greatest
    if name == "mean":
        return float(values.mean())
    return float(np.percentile(values, int(name[1:])))


def _roomy(value: Any) -> Any:
    """Whole numbers as int64, so that differences go below zero; float64 where that is too
    little."""
    if not isinstance(value, np.ndarray) or value.dtype.kind == "f":
        return value
    if value.dtype == np.uint64 and len(value) and int(value.max()) >= _BEYOND_INT64:
        return value.astype(np.float64)
    return value.astype(np.int64)
