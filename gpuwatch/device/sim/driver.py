"""IR of the block driver: takes blocks of a wave one by one and runs their warps in rounds.

A round resumes each warp that can go on until it waits, pauses or ends. When all wait at the
barrier their cycle counters become the largest one plus the barrier's cost. A block in which
nothing but polling has happened for some rounds is put aside, and the next one is begun: it may
be what the first waits for. Blocks put aside get their turns when all of the wave have begun, or
no more shall be.

The driver is not optimized: nearly all time goes to the warps, and compiling it would take longer.
"""

from __future__ import annotations

from gpuwatch.device.sim.layout import (
    TAG_COUNT,
    BlockField,
    FaultKind,
    LaunchField,
    WarpField,
    WarpState,
    WorkerField,
)

ENTRY = "run_wave"
_ENDED, _PUT_ASIDE, _FAULTED = 0, 1, 2
_IDLE_ROUNDS = 2
"""Rounds without progress after which a block is put aside."""


def driver(warp_bytes: int, *, one_barrier: bool) -> str:
    """The function `run_wave(launch, parameters, worker, shared, local, warps, slots)`."""
    return _begin_block(warp_bytes) + _run_block(warp_bytes, one_barrier=one_barrier) + _WAVE


def _field(name: str, field: int, kind: str, base: str = "%launch") -> str:
    return (
        f"  %{name}.at = getelementptr i8, ptr {base}, i64 {field}\n"
        f"  %{name} = load {kind}, ptr %{name}.at\n"
    )


def _set(name: str, field: int, kind: str, value: str, base: str = "%slot") -> str:
    return (
        f"  %{name}.to = getelementptr i8, ptr {base}, i64 {field}\n"
        f"  store {kind} {value}, ptr %{name}.to\n"
    )


def _begin_block(warp_bytes: int) -> str:
    """Sets up the block with index %index of the wave in a slot."""
    return (
        "define internal void @begin_block(ptr %launch, ptr %worker, ptr %shared, ptr %warps, "
        "ptr %slot, i64 %index) noinline optnone nounwind {\nentry:\n"
        + _field("grid.x", LaunchField.GRID, "i32")
        + _field("grid.y", LaunchField.GRID + 4, "i32")
        + _field("first", LaunchField.FIRST_BLOCK, "i64")
        + _field("shared.bytes", LaunchField.SHARED_BYTES, "i64")
        + _field("warp.count", LaunchField.WARPS, "i32")
        + _field("sms", LaunchField.SM, "ptr")
        + _field("starts", LaunchField.START, "ptr")
        + f"""\
  %tags = getelementptr i8, ptr %worker, i64 {WorkerField.TAGS}
  %linear = add i64 %first, %index
  %wide.x = zext i32 %grid.x to i64
  %wide.y = zext i32 %grid.y to i64
  %x64 = urem i64 %linear, %wide.x
  %yz = udiv i64 %linear, %wide.x
  %y64 = urem i64 %yz, %wide.y
  %z64 = udiv i64 %yz, %wide.y
  %x = trunc i64 %x64 to i32
  %y = trunc i64 %y64 to i32
  %z = trunc i64 %z64 to i32
  %sm.at = getelementptr i32, ptr %sms, i64 %index
  %sm = load i32, ptr %sm.at
  %start.at = getelementptr i64, ptr %starts, i64 %index
  %start = load i64, ptr %start.at
  call void @llvm.memset.p0.i64(ptr %shared, i8 0, i64 %shared.bytes, i1 false)
  call void @llvm.memset.p0.i64(ptr %tags, i8 -1, i64 {TAG_COUNT * 8}, i1 false)
  call void @llvm.memset.p0.i64(ptr %slot, i8 0, i64 {BlockField.BYTES}, i1 false)
"""
        + _set("index", BlockField.INDEX, "i64", "%index")
        + _set("linear", BlockField.LINEAR, "i64", "%linear")
        + _set("start", BlockField.START, "i64", "%start")
        + _set("x", BlockField.X, "i32", "%x")
        + _set("y", BlockField.Y, "i32", "%y")
        + _set("z", BlockField.Z, "i32", "%z")
        + _set("sm", BlockField.SM, "i32", "%sm")
        + _set("live", BlockField.LIVE, "i32", "1")
        + f"""\
  br label %fresh
fresh:
  %w = phi i32 [0, %entry], [%next, %fresh]
  %offset = mul i32 %w, {warp_bytes}
  %warp = getelementptr i8, ptr %warps, i32 %offset
  store i32 {WarpState.FRESH}, ptr %warp
"""
        + _set("cycles", WarpField.CYCLES, "i64", "%start", "%warp")
        + """\
  %next = add i32 %w, 1
  %more = icmp ult i32 %next, %warp.count
  br i1 %more, label %fresh, label %out
out:
  ret void
}
"""
    )


_NO_NEWS = """\
  %asleep = icmp eq i32 %state, {waiting}
  br label %decide
"""
_NEWS = """\
  %waits.here = icmp eq i32 %state, {waiting}
  %seen.at = getelementptr i8, ptr %warp, i64 {seen}
  %seen = load i32, ptr %seen.at
  %news.at = getelementptr i8, ptr %slot, i64 {completed}
  %news = load i32, ptr %news.at
  %same = icmp eq i32 %seen, %news
  %asleep = and i1 %waits.here, %same
  br label %decide
"""
_RELEASE_ALL = """\
  br label %release
release:
  %r = phi i32 [0, %all.wait], [%r.next, %release.next]
  %r.latest = phi i64 [0, %all.wait], [%r.latest.next, %release.next]
  %r.offset = mul i32 %r, {bytes}
  %r.warp = getelementptr i8, ptr %warps, i32 %r.offset
  %r.state = load i32, ptr %r.warp
  %r.cycles.at = getelementptr i8, ptr %r.warp, i64 {cycles}
  %r.cycles = load i64, ptr %r.cycles.at
  %r.waits = icmp eq i32 %r.state, {waiting}
  %r.arrival = select i1 %r.waits, i64 %r.cycles, i64 0
  %r.latest.next = call i64 @llvm.smax.i64(i64 %r.latest, i64 %r.arrival)
  br label %release.next
release.next:
  %r.next = add i32 %r, 1
  %r.more = icmp ult i32 %r.next, %warp.count
  br i1 %r.more, label %release, label %wake
wake:
  %resumed.at = add i64 %r.latest.next, %barrier
  br label %wake.one
wake.one:
  %k = phi i32 [0, %wake], [%k.next, %wake.next]
  %k.offset = mul i32 %k, {bytes}
  %k.warp = getelementptr i8, ptr %warps, i32 %k.offset
  %k.state = load i32, ptr %k.warp
  %k.waits = icmp eq i32 %k.state, {waiting}
  br i1 %k.waits, label %wake.this, label %wake.next
wake.this:
  store i32 {released}, ptr %k.warp
  %k.cycles.at = getelementptr i8, ptr %k.warp, i64 {cycles}
  store i64 %resumed.at, ptr %k.cycles.at
  br label %wake.next
wake.next:
  %k.next = add i32 %k, 1
  %k.more = icmp ult i32 %k.next, %warp.count
  br i1 %k.more, label %wake.one, label %awake
awake:
  br label %round
"""
_RECHECK = """\
  %before.at = getelementptr i8, ptr %slot, i64 {completed}
  %before = load i32, ptr %before.at
  call void @barriers_recheck(ptr %slot, i32 %threads)
  %after = load i32, ptr %before.at
  %got.on = icmp ne i32 %before, %after
  %moved.on = or i1 %got.on, %moved.next
  br i1 %moved.on, label %awake, label %deadlock
awake:
  br label %round
"""


def _run_block(warp_bytes: int, *, one_barrier: bool) -> str:
    """Runs the block in a slot until it ends (0), has to be put aside (1), or faults (2)."""
    values = {
        "waiting": WarpState.WAITING,
        "released": WarpState.RELEASED,
        "seen": WarpField.SEEN,
        "completed": BlockField.COMPLETED,
        "cycles": WarpField.CYCLES,
        "bytes": warp_bytes,
    }
    news = (_NO_NEWS if one_barrier else _NEWS).format(**values)
    release = (_RELEASE_ALL if one_barrier else _RECHECK).format(**values)
    return (
        "define internal i32 @run_block(ptr %launch, ptr %parameters, ptr %worker, ptr %shared, "
        "ptr %local, ptr %warps, ptr %slot) noinline optnone nounwind {\nentry:\n"
        + _field("warp.count", LaunchField.WARPS, "i32")
        + _field("threads", LaunchField.THREADS, "i32")
        + _field("barrier", LaunchField.BARRIER_CYCLES, "i64")
        + _field("x", BlockField.X, "i32", "%slot")
        + _field("y", BlockField.Y, "i32", "%slot")
        + _field("z", BlockField.Z, "i32", "%slot")
        + _field("sm", BlockField.SM, "i32", "%slot")
        + f"""\
  br label %round
round:
  %idle = phi i32 [0, %entry], [0, %awake], [%idle.next, %again]
  br label %one
one:
  %w = phi i32 [0, %round], [%w.next, %one.done]
  %waiting = phi i32 [0, %round], [%waiting.next, %one.done]
  %paused = phi i32 [0, %round], [%paused.next, %one.done]
  %moved = phi i1 [false, %round], [%moved.next, %one.done]
  %offset = mul i32 %w, {warp_bytes}
  %warp = getelementptr i8, ptr %warps, i32 %offset
  %state = load i32, ptr %warp
  %was.done = icmp eq i32 %state, {WarpState.DONE}
  br i1 %was.done, label %one.done, label %alive
alive:
{news}\
decide:
  br i1 %asleep, label %still.waits, label %resume
still.waits:
  %waiting.still = add i32 %waiting, 1
  br label %one.done
resume:
  %result = call i32 @warp(ptr %warp, ptr %launch, ptr %parameters, ptr %worker, ptr %shared,
                           ptr %local, ptr %slot, i32 %x, i32 %y, i32 %z, i32 %w, i32 %sm)
  store i32 %result, ptr %warp
  switch i32 %result, label %ran [i32 {WarpState.FAULTED}, label %faulted
                                  i32 {WarpState.STUCK}, label %deadlock]
ran:
  %waits = icmp eq i32 %result, {WarpState.WAITING}
  %pauses = icmp eq i32 %result, {WarpState.PAUSED}
  %one.waiting = zext i1 %waits to i32
  %one.paused = zext i1 %pauses to i32
  %waiting.ran = add i32 %waiting, %one.waiting
  %paused.ran = add i32 %paused, %one.paused
  %paused.before = icmp eq i32 %state, {WarpState.PAUSED}
  %only.polls = and i1 %pauses, %paused.before
  %step = xor i1 %only.polls, true
  %moved.ran = or i1 %moved, %step
  br label %one.done
one.done:
  %waiting.next = phi i32 [%waiting, %one], [%waiting.still, %still.waits], [%waiting.ran, %ran]
  %paused.next = phi i32 [%paused, %one], [%paused, %still.waits], [%paused.ran, %ran]
  %moved.next = phi i1 [%moved, %one], [%moved, %still.waits], [%moved.ran, %ran]
  %w.next = add i32 %w, 1
  %w.more = icmp ult i32 %w.next, %warp.count
  br i1 %w.more, label %one, label %round.end
round.end:
  %some.paused = icmp ne i32 %paused.next, 0
  br i1 %some.paused, label %polling, label %none.paused
polling:
  %idle.more = add i32 %idle, 1
  %idle.next = select i1 %moved.next, i32 0, i32 %idle.more
  %too.idle = icmp uge i32 %idle.next, {_IDLE_ROUNDS}
  br i1 %too.idle, label %put.aside, label %again
again:
  br label %round
none.paused:
  %some.wait = icmp ne i32 %waiting.next, 0
  br i1 %some.wait, label %all.wait, label %finish
all.wait:
{release}\
finish:
  br label %latest
latest:
  %e = phi i32 [0, %finish], [%e.next, %latest]
  %end = phi i64 [0, %finish], [%end.next, %latest]
  %e.offset = mul i32 %e, {warp_bytes}
  %e.place = add i32 %e.offset, {WarpField.CYCLES}
  %e.at = getelementptr i8, ptr %warps, i32 %e.place
  %e.cycles = load i64, ptr %e.at
  %end.next = call i64 @llvm.smax.i64(i64 %end, i64 %e.cycles)
  %e.next = add i32 %e, 1
  %e.more = icmp ult i32 %e.next, %warp.count
  br i1 %e.more, label %latest, label %ended
ended:
"""
        + _field("start", BlockField.START, "i64", "%slot")
        + _field("index", BlockField.INDEX, "i64", "%slot")
        + _field("durations", LaunchField.DURATION, "ptr")
        + """\
  %ran.for = sub i64 %end.next, %start
  %duration.at = getelementptr i64, ptr %durations, i64 %index
  store i64 %ran.for, ptr %duration.at
"""
        + _set("live", BlockField.LIVE, "i32", "0")
        + f"""\
  ret i32 {_ENDED}
put.aside:
  ret i32 {_PUT_ASIDE}
deadlock:
"""
        + _set("fault", WorkerField.FAULT, "i32", "0", "%worker")
        + _set("kind", WorkerField.FAULT_KIND, "i32", str(FaultKind.DEADLOCK), "%worker")
        + _set("lanes", WorkerField.FAULT_MASK, "i32", "-1", "%worker")
        + """\
  br label %faulted
faulted:
  %f.w = phi i32 [%w, %resume], [0, %deadlock]
"""
        + _field("linear", BlockField.LINEAR, "i64", "%slot")
        + _set("fault.block", WorkerField.FAULT_BLOCK, "i64", "%linear", "%worker")
        + _set("fault.warp", WorkerField.FAULT_WARP, "i32", "%f.w", "%worker")
        + f"  ret i32 {_FAULTED}\n}}\n"
    )


_WAVE = (
    f"define void @{ENTRY}(ptr %launch, ptr %parameters, ptr %worker, ptr %shared, ptr %local, "
    "ptr %warps, ptr %slots) noinline optnone nounwind {\nentry:\n"
    + _field("count", LaunchField.BLOCK_COUNT, "i64")
    + _field("shared.stride", LaunchField.SHARED_STRIDE, "i64")
    + _field("local.stride", LaunchField.LOCAL_STRIDE, "i64")
    + _field("warps.stride", LaunchField.WARPS_STRIDE, "i64")
    + f"""\
  %next.at = getelementptr i8, ptr %launch, i64 {LaunchField.NEXT}
  br label %take
take:
  %aside = phi i64 [0, %entry], [%aside, %ended], [%aside.more, %put.aside]
  %stop.at = getelementptr i8, ptr %launch, i64 {LaunchField.STOP}
  %stop = load volatile i32, ptr %stop.at
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %sweep, label %hand.out
hand.out:
  %index = atomicrmw add ptr %next.at, i64 1 monotonic
  %more = icmp ult i64 %index, %count
  br i1 %more, label %begin, label %sweep
begin:
  %t.shared.offset = mul i64 %aside, %shared.stride
  %t.local.offset = mul i64 %aside, %local.stride
  %t.warps.offset = mul i64 %aside, %warps.stride
  %t.slot.offset = mul i64 %aside, {BlockField.BYTES}
  %t.shared = getelementptr i8, ptr %shared, i64 %t.shared.offset
  %t.local = getelementptr i8, ptr %local, i64 %t.local.offset
  %t.warps = getelementptr i8, ptr %warps, i64 %t.warps.offset
  %t.slot = getelementptr i8, ptr %slots, i64 %t.slot.offset
  call void @begin_block(ptr %launch, ptr %worker, ptr %t.shared, ptr %t.warps, ptr %t.slot,
                         i64 %index)
  %t.result = call i32 @run_block(ptr %launch, ptr %parameters, ptr %worker, ptr %t.shared,
                                  ptr %t.local, ptr %t.warps, ptr %t.slot)
  switch i32 %t.result, label %begin.fault [i32 {_ENDED}, label %ended
                                            i32 {_PUT_ASIDE}, label %put.aside]
ended:
  br label %take
put.aside:
  %aside.more = add i64 %aside, 1
  br label %take
begin.fault:
  br label %fault
sweep:
  %some = icmp ne i64 %aside, 0
  br i1 %some, label %turn, label %out
turn:
  %k = phi i64 [0, %sweep], [%k.next, %turn.next]
  %left = phi i64 [0, %sweep], [%left.next, %turn.next]
  %s.slot.offset = mul i64 %k, {BlockField.BYTES}
  %s.slot = getelementptr i8, ptr %slots, i64 %s.slot.offset
"""
    + _field("live", BlockField.LIVE, "i32", "%s.slot")
    + f"""\
  %is.live = icmp ne i32 %live, 0
  br i1 %is.live, label %go.on, label %turn.next
go.on:
  %s.shared.offset = mul i64 %k, %shared.stride
  %s.local.offset = mul i64 %k, %local.stride
  %s.warps.offset = mul i64 %k, %warps.stride
  %s.shared = getelementptr i8, ptr %shared, i64 %s.shared.offset
  %s.local = getelementptr i8, ptr %local, i64 %s.local.offset
  %s.warps = getelementptr i8, ptr %warps, i64 %s.warps.offset
  %s.result = call i32 @run_block(ptr %launch, ptr %parameters, ptr %worker, ptr %s.shared,
                                  ptr %s.local, ptr %s.warps, ptr %s.slot)
  switch i32 %s.result, label %turn.fault [i32 {_ENDED}, label %turn.next
                                           i32 {_PUT_ASIDE}, label %turn.left]
turn.left:
  br label %turn.next
turn.next:
  %one = phi i64 [0, %turn], [0, %go.on], [1, %turn.left]
  %left.next = add i64 %left, %one
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %aside
  br i1 %k.more, label %turn, label %turns.done
turns.done:
  %unfinished = icmp ne i64 %left.next, 0
  br i1 %unfinished, label %sweep, label %out
turn.fault:
  br label %fault
fault:
  %f.slot = phi i64 [%aside, %begin.fault], [%k, %turn.fault]
"""
    + _set("slot", WorkerField.FAULT_SLOT, "i64", "%f.slot", "%worker")
    + """\
  br label %out
out:
  ret void
}
"""
)
