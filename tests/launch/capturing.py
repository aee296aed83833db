"""Capturing program texts, and running what was captured on the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device import open_device
from gpuwatch.device.base import KernelImage
from gpuwatch.launch import Capture, Launch, capture, read_ptx
from gpuwatch.ptx import parse
from gpuwatch.toolchain import assemble, find


def captured(
    source: Path,
    *arguments: str,
    link: Sequence[Path] = (),
    flags: Sequence[str] = (),
    device: str = "sim:a10",
    launch: int | None = None,
) -> tuple[Capture, str]:
    """The capture of a program and its PTX."""
    toolchain = find()
    target = open_device(device)[0]
    text = read_ptx(toolchain, source, target.info.arch, flags, link)
    module = parse(text, "program.ptx")
    found = capture(
        toolchain, source, module, target.answers, arguments, flags, link=link, launch=launch
    )
    return found, text


def simulate(ptx: str, launch: Launch, device: str = "sim:a10") -> list[NDArray[np.uint8]]:
    """The launch's buffers after a run on the simulator."""
    target = open_device(device)[0]
    assembled = assemble(find(), ptx, target.info.arch, launch.kernel)
    image = KernelImage(
        launch.kernel, ptx, assembled.cubin, assembled.registers, assembled.shared_bytes
    )
    loaded = target.load(image, launch, ())
    loaded.run()
    buffers = loaded.read_buffers()
    loaded.close()
    return buffers
