"""What a launch decides does not lead to other machine code."""

from __future__ import annotations

import numpy as np
import pytest
from sim_support import launch_of

from gpuwatch import cache
from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.launch.model import Launch

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .global .align 8 .u64 maps[2];
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 out, .param .u32 n)
{
\t.reg .b32 %r<6>;
\t.reg .b64 %rd<6>;
\tld.param.u64 %rd1, [out];
\tmov.u32 %r1, %tid.x;
\tmov.u32 %r2, dynamic;
\tst.shared.u32 [%r2], %r1;
\tbar.sync 0;
\tld.shared.u32 %r3, [%r2];
\tst.global.u32 [%rd1], %r3;
\tret;
}
"""


def test_the_same_object_serves_every_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[str] = []
    load = cache.load

    def noted(kind: str, key: str) -> bytes | None:
        keys.append(key)
        return load(kind, key)

    monkeypatch.setattr(cache, "load", noted)
    image = KernelImage("k", PTX, b"", 16, 0, "maps")
    launches: list[tuple[str, Launch, list[int]]] = [
        ("a10", launch_of("k", (1, 1, 1), (32, 1, 1), [np.zeros(4, np.int32)], 64), [16]),
        ("h200", launch_of("k", (70, 2, 1), (16, 9, 1), [np.zeros(999, np.int32)], 4096), [16, 80]),
        ("a10", launch_of("k", (3, 1, 5), (8, 8, 2), [np.zeros(9, np.int64)] * 2, 16), []),
    ]
    launches[1][1].cooperative = True
    for profile, launch, maps in launches:
        kernel = open_sim(profile).load(image, launch, maps)
        kernel.run()
        kernel.close()
    assert len(keys) == 3
    assert len(set(keys)) == 1
