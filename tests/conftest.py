"""What every test shares: a cache of the test run's own, and property tests that try the same
examples each time. `make fuzz` tries others, and more of them where a test does not say how
many."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("fuzz", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile("same")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compiled kernels are cached for the test run alone unless the caller chose a folder."""
    if "GPUWATCH_CACHE_DIR" not in os.environ:
        os.environ["GPUWATCH_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
