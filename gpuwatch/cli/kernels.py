"""`gpuwatch kernels`: the kernels of a program and how they are launched."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from gpuwatch.cli.arguments import options_of
from gpuwatch.engine.frame import KernelChoice, LaunchChoice, launch_text
from gpuwatch.engine.session import Session


def run(given: argparse.Namespace) -> int:
    session = Session(options_of(given))
    try:
        choices = session.kernels()
    finally:
        session.close()
    if given.json:
        print(json.dumps([_as_json(choice) for choice in choices], indent=2))
        return 0
    for choice in choices:
        print(f"{choice.demangled}  {_launched(choice)}")
        if len(choice.shapes) > 1:
            for one in choice.shapes:
                print(f"    --launch {one.index:<5} {shape_text(one)}")
    return 0


def _as_json(choice: KernelChoice) -> dict[str, Any]:
    return {
        "mangled": choice.mangled,
        "demangled": choice.demangled,
        "parameters": list(choice.parameters),
        "grid": choice.grid,
        "block": choice.block,
        "launches": choice.launches,
        "shapes": [asdict(one) for one in choice.shapes],
        "ready": choice.ready,
        "form": choice.form and choice.form.values(),
    }


def _launched(choice: KernelChoice) -> str:
    if choice.form is not None:
        words = f"--grid '{choice.form.grid}' --block '{choice.form.block}'"
        return f"launched by {words}" if choice.ready else f"launch not given; a guess: {words}"
    if not choice.shapes:
        return "never launched"
    if len(choice.shapes) == 1:
        return shape_text(choice.shapes[0])
    return f"launched {choice.launches:,} times in {len(choice.shapes)} shapes"


def shape_text(one: LaunchChoice) -> str:
    """<<<32x43, 32x24>>>  launched 20 times"""
    times = "once" if one.times == 1 else f"{one.times:,} times"
    return f"{launch_text(one.grid, one.block, one.shared_bytes)}  launched {times}"
