"""What is known of the launch before the kernel is assembled, put in place of special registers."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuwatch.instrument.model import Dim3

_READ = re.compile(r"(\bmov\.[bus]32\s+[^,;]+,\s*)(%(?:n?tid|n?ctaid)\.[xyz])(\s*;)")


def known_registers(grid: Dim3, block: Dim3) -> dict[str, str]:
    """The special registers that hold the same in every thread of a launch, with their values.

    An index along an axis of length 1 is 0.
    """
    known = {}
    for lengths, index, length in ((block, "tid", "ntid"), (grid, "ctaid", "nctaid")):
        for axis, size in zip("xyz", lengths, strict=True):
            known[f"%{length}.{axis}"] = str(size)
            if size == 1:
                known[f"%{index}.{axis}"] = "0"
    return known


def fold(text: str, known: Mapping[str, str]) -> str:
    """PTX with the values of known registers in every `mov` that reads one, so that ptxas
    computes what follows from them."""
    if not known:
        return text
    return _READ.sub(lambda one: one[1] + known.get(one[2], one[2]) + one[3], text)
