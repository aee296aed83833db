"""What ptxas says of the entries of a module."""

from __future__ import annotations

import pytest

from gpuwatch import cache
from gpuwatch.errors import UserError
from gpuwatch.toolchain import assemble, assemble_all, find

PTX = """\
.version 8.0
.target sm_86
.address_size 64
.visible .entry plain() { ret; }
.visible .entry shares()
{
\t.reg .b32 %r<2>;
\t.shared .align 4 .b8 room[512];
\tmov.u32 %r1, 7;
\tst.shared.u32 [room], %r1;
\tret;
}
"""


def test_all_entries_are_assembled_in_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain = find()
    one_by_one = [assemble(toolchain, PTX, "sm_86", name) for name in ("shares", "plain")]
    assert [one.shared_bytes for one in one_by_one] == [512, 0]
    readings = []
    load = cache.load

    def noted(kind: str, key: str) -> bytes | None:
        readings.append(kind)
        return load(kind, key)

    monkeypatch.setattr(cache, "load", noted)
    assert assemble_all(toolchain, PTX, "sm_86", ["shares", "plain"]) == one_by_one
    assert readings and len(readings) == len(set(readings))


def test_an_entry_that_is_not_there_is_told() -> None:
    with pytest.raises(UserError, match="no entry absent"):
        assemble_all(find(), PTX, "sm_86", ["plain", "absent"])
