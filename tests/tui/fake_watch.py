"""A Watch with made-up but plausible data: the article's GEMM on 72 or on 132 SMs."""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np

from gpuwatch.analysis.occupancy import SmColumns
from gpuwatch.analysis.warps import WarpColumns
from gpuwatch.device.base import DeviceInfo
from gpuwatch.engine.frame import (
    Frame,
    KernelChoice,
    Listing,
    LogEntry,
    ProbeChoice,
    Spread,
    Status,
)
from gpuwatch.launch import LaunchForm

A10 = DeviceInfo("NVIDIA A10", "sim", "a10", "sm_86", 72, 48, 1.695e9, True)
H200 = DeviceInfo("NVIDIA H200", "cuda", "", "sm_90", 132, 64, 1.98e9, False)

GEMM = "_Z8gemm_gpuPKfS0_Pfiii"
TILED = "_Z10gemm_tiledPKfS0_Pfiii"
UNUSED = "_Z6unusedv"
_PARAMETERS = ("float const*", "float const*", "float*", "int", "int", "int")

KERNELS = [
    KernelChoice(
        GEMM,
        "gemm_gpu(float const*, float const*, float*, int, int, int)",
        _PARAMETERS,
        (32, 43, 1),
        (32, 24, 1),
        1,
    ),
    KernelChoice(
        TILED,
        "gemm_tiled(float const*, float const*, float*, int, int, int)",
        _PARAMETERS,
        (32, 32, 1),
        (32, 32, 1),
        20,
    ),
    KernelChoice(UNUSED, "unused()", (), None, None, 0),
]
PROBES = [
    ProbeChoice("block_sched", "which SM runs each warp, from when and for how long", 1),
    ProbeChoice("warp_duration", "start and elapsed cycles of each warp", 2),
    ProbeChoice("gmem_traffic", "sectors and bytes of global memory accesses", 3),
    ProbeChoice("smem_conflicts", "bank conflicts of shared memory accesses", 4),
    ProbeChoice("instr_mix", "how often each kind of instruction runs", 5),
    ProbeChoice("barrier_wait", "cycles that warps wait at barriers", 6),
    ProbeChoice("divergence", "active lanes at branches", 7),
]
_WITHOUT_TIMES = ("gmem_traffic", "smem_conflicts", "instr_mix")


def warp_columns(device: DeviceInfo, blocks: int, per_block: int, seed: int) -> WarpColumns:
    """Blocks handed to the SM slot that is free first, as the hardware does."""
    rng = np.random.default_rng(seed)
    slots = device.warps_per_sm // per_block
    free = [(0, slot % device.sm_count) for slot in range(slots * device.sm_count)]
    heapq.heapify(free)
    length = rng.normal(190_000, 3_500, blocks).astype(np.int64)
    sm, begin = np.empty(blocks, np.int32), np.empty(blocks, np.int64)
    for block in range(blocks):
        ready, where = heapq.heappop(free)
        sm[block], begin[block] = where, ready + int(rng.integers(300, 900))
        heapq.heappush(free, (int(begin[block] + length[block]), where))
    warps = blocks * per_block
    block_of = np.arange(warps) // per_block
    late = rng.integers(0, 400, warps)
    elapsed = length[block_of] - late - rng.integers(0, 3_000, warps)
    return WarpColumns(
        warp=np.arange(warps),
        block=block_of,
        sm=sm[block_of],
        start=107_451_009 + begin[block_of] + late,
        elapsed=elapsed,
        average=elapsed + rng.normal(0, 500, warps),
        count=np.full(warps, 128),
    )


def sm_columns(table: WarpColumns, device: DeviceInfo, per_block: int) -> SmColumns:
    count = device.sm_count
    warps = np.bincount(table.sm, minlength=count)
    begin, end = np.full(count, 1 << 62), np.zeros(count, np.int64)
    np.minimum.at(begin, table.sm, table.start)
    np.maximum.at(end, table.sm, table.start + table.elapsed)
    busy = np.where(warps > 0, end - begin, 0)
    total = np.bincount(table.sm, table.elapsed, minlength=count)
    return SmColumns(
        sm=np.arange(count, dtype=np.int32),
        blocks=warps // per_block,
        warps=warps,
        occupancy=total / np.maximum(1, busy * device.warps_per_sm),
        busy_cycles=busy,
        idle_cycles=np.full(count, 1_196),
    )


def make_frame(device: DeviceInfo = A10, serial: int = 1, probe: str = "block_sched") -> Frame:
    """One frame of 33,024 warps; another `serial` gives other cycles."""
    blocks, per_block = 1376, 24
    table = warp_columns(device, blocks, per_block, serial)
    timed = probe not in _WITHOUT_TIMES
    p50, p90, p99 = (float(q) for q in np.percentile(table.elapsed, (50, 90, 99)))
    spread = Spread(
        int(table.elapsed.min()),
        p50,
        p90,
        p99,
        int(table.elapsed.max()),
        float(table.elapsed.mean()),
    )
    return Frame(
        serial=serial,
        kernel=KERNELS[0].demangled,
        mangled=GEMM,
        probe=probe,
        device=device,
        grid=(32, 43, 1),
        block=(32, 24, 1),
        shared_bytes=0,
        launches=127 + serial,
        launches_per_second=4.1,
        blocks=blocks,
        warps=len(table),
        records=len(table),
        missing=0,
        dropped=0,
        outputs_identical=True,
        registers_plain=32,
        registers_probed=34,
        seconds_plain=371e-6,
        seconds_probed=375e-6,
        wall_seconds_per_launch=0.24,
        resident_blocks=2,
        running_cycles_mean=190_000.0,
        idle_cycles_mean=1_196.0,
        elapsed=spread if timed else None,
        warps_table=table if timed else None,
        sms=sm_columns(table, device, per_block) if timed else None,
        notes=() if timed else ("sectors 167,772,160", "bytes 5,368,709,120"),
    )


class FakeWatch:
    """Answers at once; `hold` keeps selections from arriving until `deliver`."""

    def __init__(self, device: DeviceInfo = A10, *, ready: bool = True) -> None:
        self.info = device
        self.calls: list[str] = []
        self.hold = False
        self.kernel_list = list(KERNELS)
        self.probe_list = list(PROBES)
        self.source_list = ["kernels/gemm.cu"]
        self.source_at = 0
        self.entries: list[LogEntry] = []
        self.texts: Listing | None = None
        self.now = Status("running", "running gemm_gpu")
        self.frame: Frame | None = make_frame(device) if ready else None

    def kernels(self) -> list[KernelChoice]:
        return self.kernel_list

    def probes(self) -> list[ProbeChoice]:
        return self.probe_list

    def source(self) -> str:
        return self.source_list[self.source_at]

    def sources(self) -> tuple[str, ...]:
        return tuple(self.source_list)

    def log(self) -> tuple[LogEntry, ...]:
        return tuple(self.entries)

    def listing(self) -> Listing | None:
        return self.texts

    def device(self) -> DeviceInfo | None:
        return self.info

    def status(self) -> Status:
        return self.now

    def latest(self) -> Frame | None:
        return self.frame

    def advance(self) -> None:
        """The next launch of the same selection."""
        assert self.frame is not None
        new = make_frame(self.info, self.frame.serial + 1, self.frame.probe)
        self.frame = replace(new, mangled=self.frame.mangled, kernel=self.frame.kernel)

    def select(
        self,
        kernel: str | None = None,
        probe: str | None = None,
        launch: int | None = None,
        source: str | None = None,
    ) -> None:
        chosen = "" if launch is None else f" {launch}"
        if source is not None:
            chosen += f" {source}"
            self.source_at = self.source_list.index(source)
        self.calls.append(f"select {kernel} {probe}{chosen}")
        if not self.hold:
            self.deliver(kernel, probe)

    def give(self, kernel: str, form: LaunchForm, probe: str | None = None) -> None:
        self.calls.append(f"give {kernel} {form.grid} {form.block} {dict(form.arguments)}")
        self.deliver(kernel, probe)

    def deliver(self, kernel: str | None = None, probe: str | None = None) -> None:
        """The first frame of a new selection."""
        old = self.frame
        new = make_frame(
            self.info,
            (old.serial if old else 0) + 1,
            probe or (old.probe if old else "block_sched"),
        )
        name = kernel or (old.mangled if old else GEMM)
        shown = next(choice.demangled for choice in KERNELS if choice.mangled == name)
        self.frame = replace(
            new, mangled=name, kernel=shown, build=self.source_at, source=self.source()
        )

    def reset(self) -> None:
        self.calls.append("reset")

    def record(self, launches: int) -> str:
        self.calls.append(f"record {launches}")
        return "trace/Nov30_120000_1"

    def restart(self) -> None:
        self.calls.append("restart")

    def close(self) -> None:
        self.calls.append("close")
