"""Makes the pictures of this folder from real runs.

    python screenshots/make.py              the simulated device's pictures
    python screenshots/make.py replay       those of what an H200 recorded (kernels/h200)
    python screenshots/make.py sim NAME     those whose name begins so

Each is the live screen after some frames, saved as SVG.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from gpuwatch.engine.client import WorkerClient
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.options import Options
from gpuwatch.engine.replay_watch import ReplayWatch
from gpuwatch.errors import UserError
from gpuwatch.probe.catalogue import folder
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.replay_screen import ReplayScreen

HERE = Path(__file__).parent
FRAMES = 12
PATIENCE_SECONDS = 120.0


SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)


@dataclass(frozen=True)
class Picture:
    """`keys` are pressed one after another once frames are there: names as Textual has them."""

    name: str
    kernels: tuple[str, ...]
    probe: str
    device: str
    size: tuple[int, int]
    keys: tuple[str, ...] = ()


PICTURES = (
    Picture("gemm-a10-120x40", ("gemm",), "block_sched", "sim:a10", MIDDLE),
    Picture("gemm-tiled-a10-80x24", ("gemm_tiled",), "warp_duration", "sim:a10", SMALL),
    Picture("all-a10-200x60", ("gemm_tiled",), "block_sched", "sim:a10", LARGE),
    Picture("timeline-a10-120x40", ("gemm",), "block_sched", "sim:a10", MIDDLE, ("t", "e")),
    Picture("histogram-a10-120x40", ("gemm",), "block_sched", "sim:a10", MIDDLE,
            ("shift+tab", "m", "x", "x", *("left",) * 4)),
    Picture("filter-a10-120x40", ("gemm",), "block_sched", "sim:a10", MIDDLE,
            ("slash", *"sm == 3 and elapsed > p90", "enter")),
    Picture("baseline-a10-120x40", ("gemm", "gemm_tiled"), "block_sched", "sim:a10", MIDDLE,
            ("o",)),
    Picture("source-a10-120x40", ("gemm_tiled",), "gmem_traffic", "sim:a10", MIDDLE,
            ("p", "n", "m")),
    Picture("maps-a10-120x40", ("gemm_tiled",), "instr_mix", "sim:a10", MIDDLE),
    Picture("dmat-a10-120x40", ("gemm_tiled",), "dmat", "sim:a10", MIDDLE),
    Picture("log-a10-80x24", ("gemm",), "block_sched", "sim:a10", SMALL, ("g", "m")),
    Picture("help-a10-80x24", ("gemm",), "block_sched", "sim:a10", SMALL, ("question_mark",)),
    Picture("gemm-h200-200x60", ("gemm",), "block_sched", "replay", LARGE),
    Picture("gemm-tiled-h200-120x40", ("gemm_tiled",), "block_sched", "replay", MIDDLE),
    Picture("traffic-h200-80x24", ("gemm_traffic",), "gmem_traffic", "replay", SMALL),
)  # fmt: skip


async def _frames(pilot: Pilot[None], watch: WorkerClient, before: Frame | None = None) -> None:
    """Waits for `FRAMES` launches, of another kernel than `before` showed."""
    waited = 0.0
    while (
        (frame := watch.latest()) is None
        or frame.launches < FRAMES
        or (before is not None and frame.source == before.source)
    ):
        if (problem := watch.status().error) is not None:
            raise problem
        if waited > PATIENCE_SECONDS:
            raise TimeoutError("no frame")
        await pilot.pause(0.1)
        waited += 0.1


async def shoot(picture: Picture) -> None:
    """Runs the app without a terminal until frames are shown; a live one has the keys pressed."""
    await (_replay(picture) if picture.device == "replay" else _live(picture))


async def _replay(picture: Picture) -> None:
    (name,) = picture.kernels
    with closing(ReplayWatch(folder("kernels") / "h200" / name, callback=None)) as watch:
        app = GpuwatchApp(watch, ascii_only=False, picker=False, screen=ReplayScreen)
        async with app.run_test(size=picture.size) as pilot:
            await pilot.pause(3.0)
            _save(app, picture)


def _save(app: GpuwatchApp, picture: Picture) -> None:
    print(app.save_screenshot(filename=f"{picture.name}.svg", path=str(HERE)))


async def _live(picture: Picture) -> None:
    first, *others = (str(folder("kernels") / f"{kernel}.cu") for kernel in picture.kernels)
    options = Options(first, picture.device, probe=picture.probe, others=tuple(others))
    with WorkerClient(options) as watch:
        app = GpuwatchApp(watch, ascii_only=False, rate_hz=10.0, picker=False)
        async with app.run_test(size=picture.size) as pilot:
            await _frames(pilot, watch)
            for key in picture.keys:
                before = watch.latest()
                await pilot.press(key)
                await pilot.pause(0.1)
                if key == "o":
                    await _frames(pilot, watch, before)
            await pilot.pause(1.0)
            _save(app, picture)


def main() -> int:
    kind, wanted = (*sys.argv[1:3], *("sim", "")[len(sys.argv) - 1 :])
    try:
        for picture in PICTURES:
            if picture.device.startswith(kind) and picture.name.startswith(wanted):
                asyncio.run(shoot(picture))
    except UserError as problem:
        print(problem.render(), file=sys.stderr)
        return problem.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
