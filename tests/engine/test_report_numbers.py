"""Numbers of a report's map tables."""

from __future__ import annotations

import pytest

from gpuwatch.engine.report_maps import number_text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1_200_000, "1,200,000"),
        (2**64 - 1, "18,446,744,073,709,551,615"),
        (1_200_000.0, "1,200,000"),
        (999_999.7, "1,000,000"),
        (-1_319_807.6, "-1,319,808"),
        (1296.615, "1,296.62"),
        (9.75, "9.75"),
        (2.5e20, "2.5e+20"),
    ],
)
def test_means_are_written_out_as_far_as_an_f64_is_exact(value: float, shown: str) -> None:
    assert number_text(value) == shown
