"""Makes the pictures of this folder from real runs.

    python screenshots/make.py            the simulated device's pictures
    python screenshots/make.py cuda       the GPU's

Each is the live screen after some frames, saved as SVG.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.engine.client import WorkerClient
from gpuwatch.engine.options import Options
from gpuwatch.errors import UserError
from gpuwatch.probe.catalogue import folder
from gpuwatch.tui.app import GpuwatchApp

HERE = Path(__file__).parent
FRAMES = 12
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Picture:
    name: str
    kernel: str
    probe: str
    device: str
    size: tuple[int, int]


PICTURES = (
    Picture("gemm-a10-120x40", "gemm", "block_sched", "sim:a10", (120, 40)),
    Picture("gemm-tiled-a10-80x24", "gemm_tiled", "warp_duration", "sim:a10", (80, 24)),
    Picture("gemm-h200-200x60", "gemm", "block_sched", "cuda", (200, 60)),
    Picture("gemm-tiled-h200-120x40", "gemm_tiled", "block_sched", "cuda", (120, 40)),
)


async def shoot(picture: Picture) -> None:
    """Runs the app without a terminal until `FRAMES` launches are shown."""
    options = Options(
        source=str(folder("kernels") / f"{picture.kernel}.cu"),
        device=picture.device,
        probe=picture.probe,
    )
    with WorkerClient(options) as watch:
        app = GpuwatchApp(watch, ascii_only=False, rate_hz=10.0, picker=False)
        async with app.run_test(size=picture.size) as pilot:
            waited = 0.0
            while (frame := watch.latest()) is None or frame.launches < FRAMES:
                problem = watch.status().error
                if problem is not None:
                    raise problem
                if waited > PATIENCE_SECONDS:
                    raise TimeoutError(f"{picture.name}: no frame")
                await pilot.pause(0.1)
                waited += 0.1
            await pilot.pause(0.5)
            path = app.save_screenshot(filename=f"{picture.name}.svg", path=str(HERE))
            print(path)


def main() -> int:
    kind = sys.argv[1] if len(sys.argv) > 1 else "sim"
    try:
        for picture in PICTURES:
            if picture.device.startswith(kind):
                asyncio.run(shoot(picture))
    except UserError as problem:
        print(problem.render(), file=sys.stderr)
        return problem.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
