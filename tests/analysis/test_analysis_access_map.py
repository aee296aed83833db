"""The memory access timeline: turned to begin with the launch, and fitted to a screen."""

from __future__ import annotations

import numpy as np
import pytest
from map_figures import cells_map, hist_map

from gpuwatch.analysis.access_map import COLUMNS, access_map, fitted, is_access_map, levels


def test_it_begins_with_the_launch_and_the_first_page() -> None:
    found = access_map(cells_map({(18, 126): 3, (20, 1): 5}))
    assert found is not None
    assert found.counts.tolist() == [[3, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 5]]
    assert (found.address(0), found.address(2)) == ("120000", "140000")
    assert found.microseconds == pytest.approx(4 * 4.096)
    words = list(found.words(modelled=True))
    assert words[:2] == ["16 us modelled", "up to 5 accesses of a page in 4.1 us"]
    assert "2 pages of 64 KiB" in words and not any("folded" in word for word in words)


def test_a_long_launch_is_folded_and_a_sample_told() -> None:
    found = access_map(cells_map({(0, column): 1 for column in range(COLUMNS)}, sample=4))
    assert found is not None and found.folded
    words = list(found.words(modelled=False))
    assert words[0] == "524 us"
    assert "folded: longer than 524 us" in words and "estimated from 1 warp in 4" in words


def test_one_of_a_kind_is_told_in_the_singular() -> None:
    found = access_map(cells_map({(18, 0): 1}))
    assert found is not None
    words = list(found.words(modelled=False))
    assert words[1:] == [
        "up to 1 access of a page in 4.1 us",
        "1 access of warps",
        "1 page of 64 KiB",
    ]


def test_no_access_is_no_picture() -> None:
    assert access_map(cells_map({})) is None


def test_a_histogram_of_another_size_is_no_picture() -> None:
    assert is_access_map(cells_map({}))
    assert not is_access_map(hist_map("page_by_time", [1] * 100))
    assert not is_access_map(hist_map("mine", [1] * COLUMNS))


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (7, 5), (256, 128), (3, 400)])
def test_fitted_has_the_size_wanted_and_loses_no_peak(shape: tuple[int, int]) -> None:
    counts = np.zeros((40, 60), np.int64)
    counts[17, 59] = 9
    counts[3, 0] = 4
    picture = fitted(counts, *shape)
    assert picture.shape == shape
    assert picture.max() == 9
    assert picture[:, 0].max() >= 4


def test_a_cell_is_the_most_of_its_neighbours_and_never_their_sum() -> None:
    counts = np.full((10, 10), 3, np.int64)
    assert set(fitted(counts, 4, 7).ravel().tolist()) == {3}
    assert fitted(np.array([[1, 2]]), 2, 4).tolist() == [[1, 1, 2, 2]] * 2


def test_only_nothing_has_no_shade() -> None:
    assert levels(np.array([0, 1, 50, 51, 100]), 100, 4).tolist() == [0, 1, 2, 3, 4]
