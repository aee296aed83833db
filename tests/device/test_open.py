"""Devices by their names on the command line."""

from __future__ import annotations

import pytest

from gpuwatch.device import check_device, open_device
from gpuwatch.errors import UserError


@pytest.mark.parametrize("spec", ["", "bogus", "auto:1", "cuda:x", "cuda:\N{SUPERSCRIPT TWO}"])
def test_what_names_no_device_is_told(spec: str) -> None:
    for used in (check_device, open_device):
        with pytest.raises(UserError, match="there is no device"):
            used(spec)


@pytest.mark.parametrize("spec", ["auto", "auto:", "sim", "sim:h200", "cuda", "cuda:", "cuda:3"])
def test_forms_are_checked_without_opening(spec: str) -> None:
    check_device(spec)


def test_an_unknown_profile_is_told() -> None:
    for used in (check_device, open_device):
        with pytest.raises(UserError, match="bogus"):
            used("sim:bogus")
