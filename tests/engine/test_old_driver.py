"""A driver that is too old for the toolkit is told before anything is compiled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpuwatch.engine import program
from gpuwatch.engine.options import Options
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.errors import UserError
from gpuwatch.probe.catalogue import folder


def test_an_old_driver_is_told_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "load_libcuda", lambda: "11.8")
    device: Any = SimpleNamespace(info=SimpleNamespace(arch="sm_90", kind="cuda"))
    said: list[str] = []
    with pytest.raises(UserError, match=r"it runs CUDA 11\.8") as told:
        WatchedProgram(Options(str(folder("kernels") / "gemm.cu")), device, said.append)
    assert "--cuda-home" in told.value.hint and said == []
