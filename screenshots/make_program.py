"""Makes the pictures of a running program; needs an NVIDIA GPU, PyTorch and Triton.

    python screenshots/make_program.py [FOLDER]

The kernels of `tests/inject/programs/tensors.py` as they are launched, and a probe on one of them.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from functools import partial
from pathlib import Path

from gpuwatch.engine.program_session import ProgramOptions
from gpuwatch.engine.program_watch import RunningProgram
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.program_screen import ProgramScreen

HERE = Path(__file__).parent
PROGRAM = HERE.parent / "tests" / "inject" / "programs" / "tensors.py"
SIZE = (120, 40)
_FOLDER = re.compile(r"/\S*?gpuwatch-run-[\w-]+")


async def shoot(folder: Path) -> None:
    """The list once it has figures, then the live screen of the Triton kernel."""
    os.chdir(PROGRAM.parent)
    watch = RunningProgram(ProgramOptions(("python3", PROGRAM.name, "1000000")))
    try:
        app = GpuwatchApp(watch, first=partial(ProgramScreen, "block_sched"))
        async with app.run_test(size=SIZE) as pilot:
            while len(watch.program_kernels()) < 5 or watch.program().launches < 40000:
                await pilot.pause(0.2)
            await pilot.pause(2.0)
            _save(app, folder / "program-h200-120x40.svg")
            await pilot.press("slash", *"add", "enter", "enter")
            while (frame := watch.latest()) is None or frame.launches < 60:
                await pilot.pause(0.2)
            await pilot.press("p")
            await pilot.pause(1.0)
            _save(app, folder / "program-triton-h200-120x40.svg")
    finally:
        os.kill(watch.program().pid, signal.SIGKILL)
        watch.close()
        watch.remove()


def _save(app: GpuwatchApp, path: Path) -> None:
    """Without the name of the run's own folder."""
    text = app.export_screenshot()
    path.write_text(_FOLDER.sub("RUN", text))
    print(path.name)


if __name__ == "__main__":
    asyncio.run(shoot(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE))
