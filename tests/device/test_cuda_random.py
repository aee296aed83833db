"""The GPU against the reference interpreter, bit for bit: what the simulator is exact by."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from random_programs import THREADS
from random_programs_cases import Claim, claims, differences
from sim_support import launch_of

from gpuwatch.device import open_device
from gpuwatch.device.base import Device, KernelImage
from gpuwatch.toolchain import assemble, find

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    opened, _ = open_device("cuda", 20.0)
    yield opened
    opened.close()


@pytest.mark.parametrize("claim", claims(), ids=str)
def test_every_form_of_which_the_bits_are_claimed(claim: Claim, device: Device) -> None:
    case = claim.case(seed=0)
    arrays = [np.frombuffer(content, np.uint8) for content in case.inputs]
    made = assemble(find(), case.text, device.info.arch, "random")
    image = KernelImage("random", case.text, made.cubin, made.registers, made.shared_bytes)
    loaded = device.load(image, launch_of("random", (1, 1, 1), (THREADS, 1, 1), arrays), [])
    try:
        loaded.run()
        found = [buffer.tobytes() for buffer in loaded.read_buffers()]
    finally:
        loaded.close()
    wrong = differences(case, found)
    assert not wrong, "\n".join([*wrong, case.text])
