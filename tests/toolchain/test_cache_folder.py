"""The cache of compiled results, in folders that can and cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch import cache
from gpuwatch.errors import UserError


def test_what_was_stored_is_loaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUWATCH_CACHE_DIR", str(tmp_path / "deep" / "folder"))
    assert cache.load("kind", "key") is None
    cache.store("kind", "key", b"content")
    assert cache.load("kind", "key") == b"content"
    assert [one.name for one in (tmp_path / "deep" / "folder" / "kind").iterdir()] == ["key"]


def test_a_cache_folder_that_cannot_be_used_is_told_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    monkeypatch.setenv("GPUWATCH_CACHE_DIR", str(occupied))
    with pytest.raises(UserError, match="cannot be used"):
        cache.load("kind", "key")
    with pytest.raises(UserError, match="cannot be used") as caught:
        cache.store("kind", "key", b"")
    assert caught.value.status == 2
    assert str(occupied) in str(caught.value)
    assert "GPUWATCH_CACHE_DIR" in caught.value.hint
