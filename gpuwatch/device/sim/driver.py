"""IR of the block driver: takes blocks of a wave one by one and runs their warps in rounds.

A round resumes each warp that is not done until it waits at a barrier or ends. Between rounds
all cycle counters of waiting warps become the largest one plus the barrier's cost.
"""

from __future__ import annotations

from gpuwatch.device.sim.layout import (
    TAG_COUNT,
    LaunchField,
    WarpField,
    WarpState,
    WorkerField,
)

ENTRY = "run_wave"


def driver(warp_bytes: int) -> str:
    """The function `run_wave(launch, parameters, worker, shared, local, warps)`."""
    return _HEAD + _block(warp_bytes) + _rounds(warp_bytes) + _TAIL


def _field(name: str, field: int, kind: str, base: str = "%launch") -> str:
    return (
        f"  %{name}.at = getelementptr i8, ptr {base}, i64 {field}\n"
        f"  %{name} = load {kind}, ptr %{name}.at\n"
    )


_HEAD = (
    f"define void @{ENTRY}(ptr %launch, ptr %parameters, ptr %worker, ptr %shared, ptr %local, "
    "ptr %warps) nounwind {\nentry:\n"
    + _field("grid.x", LaunchField.GRID, "i32")
    + _field("grid.y", LaunchField.GRID + 4, "i32")
    + _field("first", LaunchField.FIRST_BLOCK, "i64")
    + _field("count", LaunchField.BLOCK_COUNT, "i64")
    + _field("shared.bytes", LaunchField.SHARED_BYTES, "i64")
    + _field("warp.count", LaunchField.WARPS, "i32")
    + _field("barrier", LaunchField.BARRIER_CYCLES, "i64")
    + _field("sms", LaunchField.SM, "ptr")
    + _field("starts", LaunchField.START, "ptr")
    + _field("durations", LaunchField.DURATION, "ptr")
    + f"""  %next.at = getelementptr i8, ptr %launch, i64 {LaunchField.NEXT}
  %tags = getelementptr i8, ptr %worker, i64 {WorkerField.TAGS}
  %fault.block = getelementptr i8, ptr %worker, i64 {WorkerField.FAULT_BLOCK}
  %fault.warp = getelementptr i8, ptr %worker, i64 {WorkerField.FAULT_WARP}
  br label %take
"""
)


def _block(warp_bytes: int) -> str:
    return f"""
take:
  %index = atomicrmw add ptr %next.at, i64 1 monotonic
  %more = icmp ult i64 %index, %count
  br i1 %more, label %block, label %out
block:
  %linear = add i64 %first, %index
  %wide.x = zext i32 %grid.x to i64
  %wide.y = zext i32 %grid.y to i64
  %bx64 = urem i64 %linear, %wide.x
  %byz = udiv i64 %linear, %wide.x
  %by64 = urem i64 %byz, %wide.y
  %bz64 = udiv i64 %byz, %wide.y
  %bx = trunc i64 %bx64 to i32
  %by = trunc i64 %by64 to i32
  %bz = trunc i64 %bz64 to i32
  %sm.at = getelementptr i32, ptr %sms, i64 %index
  %sm = load i32, ptr %sm.at
  %start.at = getelementptr i64, ptr %starts, i64 %index
  %start = load i64, ptr %start.at
  call void @llvm.memset.p0.i64(ptr %shared, i8 0, i64 %shared.bytes, i1 false)
  call void @llvm.memset.p0.i64(ptr %tags, i8 -1, i64 {TAG_COUNT * 8}, i1 false)
  br label %fresh
fresh:
  %f = phi i32 [0, %block], [%f.next, %fresh]
  %f64 = zext i32 %f to i64
  %f.offset = mul i64 %f64, {warp_bytes}
  %f.warp = getelementptr i8, ptr %warps, i64 %f.offset
  store i32 {WarpState.FRESH}, ptr %f.warp
  %f.cycles = getelementptr i8, ptr %f.warp, i64 {WarpField.CYCLES}
  store i64 %start, ptr %f.cycles
  %f.next = add i32 %f, 1
  %f.more = icmp ult i32 %f.next, %warp.count
  br i1 %f.more, label %fresh, label %round
"""


def _rounds(warp_bytes: int) -> str:
    return f"""
round:
  %end = phi i64 [%start, %fresh], [%end.next, %release]
  br label %warp
warp:
  %w = phi i32 [0, %round], [%w.next, %warp.done]
  %waiting = phi i32 [0, %round], [%waiting.next, %warp.done]
  %latest = phi i64 [0, %round], [%latest.next, %warp.done]
  %last = phi i64 [%end, %round], [%end.next, %warp.done]
  %w64 = zext i32 %w to i64
  %w.offset = mul i64 %w64, {warp_bytes}
  %w.state = getelementptr i8, ptr %warps, i64 %w.offset
  %w.cycles = getelementptr i8, ptr %w.state, i64 {WarpField.CYCLES}
  %state = load i32, ptr %w.state
  %was.done = icmp eq i32 %state, {WarpState.DONE}
  br i1 %was.done, label %warp.done, label %resume
resume:
  %result = call i32 @warp(ptr %w.state, ptr %launch, ptr %parameters, ptr %worker,
                           ptr %shared, ptr %local, i32 %bx, i32 %by, i32 %bz, i32 %w, i32 %sm)
  store i32 %result, ptr %w.state
  %cycles = load i64, ptr %w.cycles
  %bad = icmp eq i32 %result, {WarpState.FAULTED}
  br i1 %bad, label %faulted, label %ran
ran:
  %waits = icmp eq i32 %result, {WarpState.WAITING}
  %one = zext i1 %waits to i32
  %more.waiting = add i32 %waiting, %one
  %arrival = select i1 %waits, i64 %cycles, i64 0
  %latest.ran = call i64 @llvm.smax.i64(i64 %latest, i64 %arrival)
  %end.ran = call i64 @llvm.smax.i64(i64 %last, i64 %cycles)
  br label %warp.done
warp.done:
  %waiting.next = phi i32 [%waiting, %warp], [%more.waiting, %ran]
  %latest.next = phi i64 [%latest, %warp], [%latest.ran, %ran]
  %end.next = phi i64 [%last, %warp], [%end.ran, %ran]
  %w.next = add i32 %w, 1
  %w.more = icmp ult i32 %w.next, %warp.count
  br i1 %w.more, label %warp, label %round.end
round.end:
  %any = icmp ne i32 %waiting.next, 0
  %resumed.at = add i64 %latest.next, %barrier
  br i1 %any, label %align, label %finish
align:
  %a = phi i32 [0, %round.end], [%a.next, %align]
  %a64 = zext i32 %a to i64
  %a.offset = mul i64 %a64, {warp_bytes}
  %a.place = add i64 %a.offset, {WarpField.CYCLES}
  %a.cycles = getelementptr i8, ptr %warps, i64 %a.place
  store i64 %resumed.at, ptr %a.cycles
  %a.next = add i32 %a, 1
  %a.more = icmp ult i32 %a.next, %warp.count
  br i1 %a.more, label %align, label %release
release:
  br label %round
"""


_TAIL = """
finish:
  %ran.for = sub i64 %end.next, %start
  %duration.at = getelementptr i64, ptr %durations, i64 %index
  store i64 %ran.for, ptr %duration.at
  br label %take
faulted:
  store i64 %linear, ptr %fault.block
  store i32 %w, ptr %fault.warp
  br label %out
out:
  ret void
}
"""
