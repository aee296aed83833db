"""What every test shares: a cache of the test run's own, and GPU tests only where one is."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiled kernels are cached for the test run alone unless the caller chose a folder."""
    if "GPUWATCH_CACHE_DIR" not in os.environ:
        os.environ["GPUWATCH_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
