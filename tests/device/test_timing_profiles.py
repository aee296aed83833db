"""Profiles and occupancy of the simulated GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.device.sim import profiles
from gpuwatch.device.sim.occupancy import resident_blocks, resident_warps
from gpuwatch.errors import UserError

A10 = (profiles.FOLDER / "a10.toml").read_text()


@pytest.mark.parametrize(
    ("name", "arch", "sms", "threads"),
    [
        ("a10", "sm_86", 72, 1536),
        ("h200", "sm_90", 132, 2048),
        ("t4", "sm_75", 40, 1024),
        ("a100", "sm_80", 108, 2048),
        ("h100", "sm_90", 132, 2048),
        ("rtx4090", "sm_89", 128, 1536),
    ],
)
def test_profiles_that_ship(name: str, arch: str, sms: int, threads: int) -> None:
    profile = profiles.load(name)
    assert (profile.name, profile.arch, profile.sm_count) == (name, arch, sms)
    assert profile.threads_per_sm == threads
    assert "modelled" in profile.title


def test_every_profile_in_the_folder_loads() -> None:
    assert len(profiles.names()) >= 3
    for name in profiles.names():
        answers = profiles.answers(profiles.load(name))
        profile = profiles.load(name)
        assert answers.sm_count == profile.sm_count
        assert f"sm_{answers.compute_major}{answers.compute_minor}" == profile.arch
        assert answers.clock_khz * 1000 == profile.clock_hz


def test_a_profile_by_path(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(A10.replace("sm_count = 72", "sm_count = 3"))
    assert (profiles.load(str(path)).name, profiles.load(str(path)).sm_count) == ("mine", 3)


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UserError) as caught:
        profiles.load("a11")
    assert "a10" in caught.value.hint and "h200" in caught.value.hint


@pytest.mark.parametrize(
    ("old", "new", "words", "line_holds"),
    [
        ("sm_count = 72", "sm_count = = 72", "not valid TOML", "sm_count"),
        ("sm_count = 72", "smcount = 72", "unknown key 'smcount'", "smcount = 72"),
        ("sm_count = 72", "", "[limits] lacks sm_count", "[limits]"),
        ("sm_count = 72", "sm_count = 7.5", "must be a whole number", "sm_count = 7.5"),
        ("sm_count = 72", "sm_count = 0", "must be above zero", "sm_count = 0"),
        ("sm_count = 72", "sm_count = true", "must be a whole number", "sm_count = true"),
        ("[latency]", "[latencies]", "unknown key 'latencies'", "[latencies]"),
        ('arch = "sm_86"', 'arch = "8.6"', "must look like", "arch"),
        ("l2 = 200", "l22 = 200", "unknown key 'l22'", "l22"),
        ("l2_bytes =", "l1_bytes = 9\nl2_bytes =", "unknown key 'l1_bytes'", "l1_bytes = 9"),
        ("dram = 480", "dram = 100", "'l2' is above 'dram'", "l2 ="),
        ("shared_per_sm = 102400", "shared_per_sm = 9", "is above 'shared_per_sm'", "max ="),
        ('title = "NVIDIA A10 (modelled)"', "", "'title' is missing", "#"),
    ],
)
def test_mistakes_are_shown_at_their_place(old: str, new: str, words: str, line_holds: str) -> None:
    with pytest.raises(UserError) as caught:
        profiles.parse(A10.replace(old, new), "mine", "mine.toml")
    assert words in caught.value.message
    assert caught.value.at is not None and line_holds in caught.value.at.text
    assert caught.value.hint


def test_a_misspelt_key_gets_a_suggestion() -> None:
    with pytest.raises(UserError) as caught:
        profiles.parse(A10.replace("sm_count", "sm_cuont"), "mine", "mine.toml")
    assert "did you mean 'sm_count'?" in caught.value.hint


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        profiles.load(str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("profile", "threads", "registers", "shared", "blocks", "limit"),
    [
        # By hand after cuda_occupancy.h: limits of the architecture, then allocation units.
        ("a10", 768, 32, 0, 2, "warps"),
        ("a10", 1024, 32, 0, 1, "warps"),
        ("a10", 32, 16, 0, 16, "blocks"),
        ("a10", 256, 64, 0, 4, "registers"),
        ("a10", 256, 33, 0, 6, "warps"),
        ("a10", 256, 41, 0, 5, "registers"),
        ("a10", 96, 128, 0, 5, "registers"),
        ("a10", 64, 16, 48 * 1024, 2, "shared memory"),
        ("a10", 64, 16, 101376, 1, "shared memory"),
        ("h200", 1024, 32, 8192, 2, "warps"),
        ("h200", 1024, 40, 0, 1, "registers"),
        ("h200", 64, 32, 0, 32, "warps"),
        ("h200", 32, 32, 0, 32, "blocks"),
        ("h200", 128, 32, 0, 16, "warps"),
        ("h200", 128, 16, 227 * 1024, 1, "shared memory"),
        ("t4", 1024, 64, 0, 1, "warps"),
        ("t4", 256, 32, 16384, 4, "warps"),
        ("t4", 128, 32, 16384, 4, "shared memory"),
        ("t4", 128, 32, 65536, 1, "shared memory"),
    ],
)
def test_resident_blocks(
    profile: str, threads: int, registers: int, shared: int, blocks: int, limit: str
) -> None:
    found = resident_blocks(profiles.load(profile), threads, registers, shared)
    assert (found.blocks, found.limited_by) == (blocks, limit)


@pytest.mark.parametrize(
    ("threads", "registers", "shared"),
    [(1025, 16, 0), (0, 16, 0), (1024, 72, 0), (32, 256, 0), (32, 16, 101377)],
)
def test_a_block_that_cannot_fit(threads: int, registers: int, shared: int) -> None:
    with pytest.raises(UserError) as caught:
        resident_blocks(profiles.load("a10"), threads, registers, shared)
    assert caught.value.status == 1


def test_small_grids_do_not_fill_an_sm() -> None:
    profile = profiles.load("a10")
    assert resident_warps(profile, resident=2, blocks=72, warps_per_block=24) == 24
    assert resident_warps(profile, resident=2, blocks=73, warps_per_block=24) == 48
    assert resident_warps(profile, resident=2, blocks=1000, warps_per_block=24) == 48
