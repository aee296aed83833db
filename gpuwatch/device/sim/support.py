"""IR of the functions that generated code calls: fault records, sectors, cache tags, banks.

All but the first walk over the distinct values among the lanes of a mask, one step for each.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuwatch.device.sim.layout import LINE_BYTES, SECTOR_BYTES, TAG_COUNT, WorkerField


@dataclass(frozen=True, slots=True)
class _Walk:
    """A function over distinct values: `shift` turns addresses into them; `step` sees `%value`
    (i64), `%peers` (i32) and `%state` (i64) and defines `%next.state`."""

    head: str
    shift: int
    entry: str
    step: str
    result: str

    def text(self) -> str:
        return f"""
define internal {self.head} noinline nounwind {{
entry:
  %lanes = load <32 x i64>, ptr %values, align 64
  %keys = lshr <32 x i64> %lanes, splat (i64 {self.shift})
{self.entry}
  br label %head
head:
  %pending = phi i32 [%mask, %entry], [%rest, %walk]
  %state = phi i64 [0, %entry], [%next.state, %walk]
  %empty = icmp eq i32 %pending, 0
  br i1 %empty, label %out, label %walk
walk:
  %lane = call i32 @llvm.cttz.i32(i32 %pending, i1 true)
  %value = extractelement <32 x i64> %keys, i32 %lane
  %first = insertelement <32 x i64> poison, i64 %value, i32 0
  %same = shufflevector <32 x i64> %first, <32 x i64> poison, <32 x i32> zeroinitializer
  %equal = icmp eq <32 x i64> %keys, %same
  %matched = bitcast <32 x i1> %equal to i32
  %peers = and i32 %matched, %pending
  %others = xor i32 %peers, -1
  %rest = and i32 %pending, %others
{self.step}
  br label %head
out:
{self.result}
}}
"""


_LINE_INDEX = f"""
  %fold = lshr i64 %value, 5
  %fold.more = lshr i64 %value, 15
  %folded = xor i64 %value, %fold
  %folded.more = xor i64 %folded, %fold.more
  %line.index = and i64 %folded.more, {TAG_COUNT - 1}
"""
"""Of the line %value: strides of powers of two spread over all lines."""

_LOOK_UP = f"""
{_LINE_INDEX}
  %tag.offset = shl i64 %line.index, 3
  %tag.place = add i64 %tag.offset, {WorkerField.TAGS}
  %tag.pointer = getelementptr i8, ptr %worker, i64 %tag.place
  %tag = load i64, ptr %tag.pointer
  store i64 %value, ptr %tag.pointer
  %missed = icmp ne i64 %tag, %value
"""

_TOUCH_LINE = f"""
define internal i1 @touch_line(ptr %worker, i64 %address) alwaysinline nounwind {{
  %value = lshr i64 %address, {LINE_BYTES.bit_length() - 1}
{_LOOK_UP}
  ret i1 %missed
}}
"""

_TOUCH_LINES = _Walk(
    "i64 @touch_lines(ptr %worker, ptr %values, i32 %mask)",
    LINE_BYTES.bit_length() - 1,
    "",
    _LOOK_UP + "  %miss = zext i1 %missed to i64\n  %both = or i64 %miss, 4294967296\n"
    "  %next.state = add i64 %state, %both",
    "  ret i64 %state",
)

_MISSED_SECTORS = """
define internal i64 @missed_sectors(i64 %sectors, i64 %touched) alwaysinline nounwind {
  %missed = and i64 %touched, 4294967295
  %lines = lshr i64 %touched, 32
  %some = call i64 @llvm.umax.i64(i64 %lines, i64 1)
  %times = mul i64 %sectors, %missed
  %fetched = udiv i64 %times, %some
  ret i64 %fetched
}
"""
"""Of `sectors`, those in lines that were missed, by what `touch_lines` gave."""

_DISTINCT_SECTORS = _Walk(
    "i64 @distinct_sectors(ptr %values, i32 %mask)",
    SECTOR_BYTES.bit_length() - 1,
    "",
    "  %next.state = add i64 %state, 1",
    "  ret i64 %state",
)

_COUNT_ATOMICS = _Walk(
    "void @count_atomics(ptr %worker, ptr %values, i32 %mask, i64 %turns)",
    SECTOR_BYTES.bit_length() - 1,
    "",
    f"""
  %line = lshr i64 %value, {(LINE_BYTES // SECTOR_BYTES).bit_length() - 1}
{_LINE_INDEX.replace("%value", "%line")}
  %count.offset = shl i64 %line.index, 3
  %count.place = add i64 %count.offset, {WorkerField.ATOMICS}
  %count.pointer = getelementptr i8, ptr %worker, i64 %count.place
  %count = load i64, ptr %count.pointer
  %more = add i64 %count, %turns
  store i64 %more, ptr %count.pointer
  %next.state = add i64 %state, 0""",
    "  ret void",
)

_BANK_CONFLICTS = _Walk(
    "i64 @bank_conflicts(ptr %values, i32 %mask)",
    2,
    "  %banks = alloca [32 x i64]\n  store [32 x i64] zeroinitializer, ptr %banks",
    "  %bank = and i64 %value, 31\n"
    "  %place = getelementptr i64, ptr %banks, i64 %bank\n"
    "  %before = load i64, ptr %place\n  %count = add i64 %before, 1\n"
    "  store i64 %count, ptr %place\n"
    "  %next.state = call i64 @llvm.umax.i64(i64 %state, i64 %before)",
    "  ret i64 %state",
)

_MATCH_LANES = _Walk(
    "void @match_lanes(ptr %values, ptr %result, i32 %mask)",
    0,
    "  store <32 x i32> zeroinitializer, ptr %result, align 64",
    "  %old = load <32 x i32>, ptr %result, align 64\n"
    "  %chosen = bitcast i32 %peers to <32 x i1>\n"
    "  %one = insertelement <32 x i32> poison, i32 %peers, i32 0\n"
    "  %all = shufflevector <32 x i32> %one, <32 x i32> poison, <32 x i32> zeroinitializer\n"
    "  %new = select <32 x i1> %chosen, <32 x i32> %all, <32 x i32> %old\n"
    "  store <32 x i32> %new, ptr %result, align 64\n  %next.state = add i64 %state, 0",
    "  ret void",
)

_RECORD_FAULT = f"""
define internal void @record_fault(ptr %worker, i32 %place, i32 %kind, i32 %mask,
                                   <32 x i64> %addresses) noinline cold nounwind {{
  %a = getelementptr i8, ptr %worker, i64 {WorkerField.FAULT}
  store i32 %place, ptr %a
  %b = getelementptr i8, ptr %worker, i64 {WorkerField.FAULT_KIND}
  store i32 %kind, ptr %b
  %c = getelementptr i8, ptr %worker, i64 {WorkerField.FAULT_MASK}
  store i32 %mask, ptr %c
  %d = getelementptr i8, ptr %worker, i64 {WorkerField.ADDRESSES}
  store <32 x i64> %addresses, ptr %d, align 8
  ret void
}}
"""

DECLARATIONS = frozenset(
    {
        "declare i32 @llvm.cttz.i32(i32, i1)",
        "declare i64 @llvm.umax.i64(i64, i64)",
        "declare i64 @llvm.smax.i64(i64, i64)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    }
)

FUNCTIONS = "".join(
    (
        _RECORD_FAULT,
        _TOUCH_LINE,
        _MISSED_SECTORS,
        *(
            walk.text()
            for walk in (
                _TOUCH_LINES,
                _DISTINCT_SECTORS,
                _COUNT_ATOMICS,
                _BANK_CONFLICTS,
                _MATCH_LANES,
            )
        ),
    )
)
