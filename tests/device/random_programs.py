"""Random PTX programs: instruction forms, programs as hypothesis draws them, their text.

A program loads its registers from a buffer of chosen bit patterns, runs straight and divergent
code over them, and stores every register. Registers of each letter have one type; NaN patterns
never reach an integer register, for they are not modelled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_programs_floats import FLOAT_FORMS
from random_programs_forms import INTEGER_FORMS, SIZES, TYPES
from random_programs_memory import MEMORY_FORMS, WARP_FORMS

THREADS = 64
COUNT = 5
"""Registers of each letter."""

COMPUTING = [*INTEGER_FORMS, *FLOAT_FORMS]
"""Instructions on registers alone."""
PLAIN = [*COMPUTING, *MEMORY_FORMS]
"""Instructions for anywhere."""
WHOLE_WARP = WARP_FORMS
CONTROL = ["if", "else", "loop", "end"]


@dataclass(frozen=True)
class Step:
    form: str
    picks: tuple[int, ...]
    """Which registers and immediates fill the form's places, in order."""
    guard: int
    """0 to 3: predicate, negated from 2 on; none above."""


_STEPS = st.builds(
    Step,
    st.one_of(
        st.sampled_from(PLAIN),
        st.sampled_from(PLAIN),
        st.sampled_from(WHOLE_WARP),
        st.sampled_from(CONTROL),
    ),
    st.lists(st.integers(0, 1 << 16), min_size=8, max_size=8).map(tuple),
    st.integers(0, 11),
)
programs = st.lists(_STEPS, min_size=1, max_size=60)

_IMMEDIATES = [0, 1, -1, 2, 7, -128, 255, 1000, 32767, -32768]
_PLACE = re.compile(r"\{([a-z])(\d*)\}")


def instruction(step: Step) -> str:
    """The text of a step that is no control flow, without guard."""
    picks = cycle(step.picks)
    last: dict[str, int] = {}

    def fill(match: re.Match[str]) -> str:
        letter, number = match[1], match[2]
        if letter == "o":
            return str(next(picks) % (64 // int(number)) * int(number))
        pick = next(picks)
        if letter == "i":
            return str(_IMMEDIATES[pick % len(_IMMEDIATES)])
        if letter in "kc":
            return str(pick % 70 if letter == "k" else [31, 0, 0x1C1F, 0x101F, 0x181F][pick % 5])
        index = (last[letter] + 1) % COUNT if number else pick % COUNT
        last[letter] = index
        return f"%{letter}{index}"

    return _PLACE.sub(fill, step.form).replace("<", "{").replace(">", "}") + ";"


def text_of(steps: list[Step]) -> str:
    """The program as PTX: the registers that it uses in from `inputs`, out to `outputs`."""
    lines: list[str] = []
    nest: list[tuple[str, int]] = []
    for number, step in enumerate(steps):
        if step.form in CONTROL:
            _control(lines, nest, step, number)
        elif step.form in WHOLE_WARP:
            lines += [instruction(step)] if not nest else []
        else:
            guarded = step.guard < 4 and "\n" not in step.form
            guard = f"@{'!' if step.guard > 1 else ''}%p{step.guard % 2} " if guarded else ""
            lines.append(guard + instruction(step))
    while nest:
        _close(lines, nest)
    used = set(re.findall(r"%[a-z]\d\b", "\n".join(lines)))
    return _HEAD + _transfer("ld", used) + "\n".join(lines) + "\n" + _transfer("st", used) + _TAIL


def _control(lines: list[str], nest: list[tuple[str, int]], step: Step, number: int) -> None:
    """`if` runs for the lanes of a predicate, `loop` 1 to 4 times, by the lane."""
    if step.form == "if" and len(nest) < 3:
        nest.append(("if", number))
        lines.append(f"@{'!' if step.guard > 5 else ''}%p{step.picks[0] % COUNT} bra E{number};")
    elif step.form == "loop" and len(nest) < 3:
        counter = f"%count{len(nest)}"
        nest.append(("loop", number))
        lines += [f"and.b32 {counter}, %lane, {step.picks[0] % 4};", f"L{number}:"]
    elif step.form == "else" and nest and nest[-1][0] == "if":
        start = nest.pop()[1]
        nest.append(("else", start))
        lines += [f"bra F{start};", f"E{start}:"]
    elif step.form == "end" and nest:
        _close(lines, nest)


def _close(lines: list[str], nest: list[tuple[str, int]]) -> None:
    kind, number = nest.pop()
    if kind == "loop":
        counter = f"%count{len(nest)}"
        lines += [f"sub.s32 {counter}, {counter}, 1;", f"setp.ge.s32 %again, {counter}, 0;",
                  f"@%again bra L{number};"]  # fmt: skip
    else:
        lines.append(f"{'E' if kind == 'if' else 'F'}{number}:")


_HEAD = f""".version 8.4
.target sm_90
.address_size 64
.visible .entry random(.param .u64 inputs, .param .u64 outputs, .param .u64 own, .param .u64 all)
{{
.reg .b32 %r<{COUNT}>; .reg .b64 %q<{COUNT}>; .reg .b16 %h<{COUNT}>; .reg .b16 %g<{COUNT}>;
.reg .b16 %w<{COUNT}>; .reg .b32 %u<{COUNT}>; .reg .b32 %v<{COUNT}>;
.reg .f32 %f<{COUNT}>; .reg .f64 %d<{COUNT}>; .reg .pred %p<{COUNT}>; .reg .pred %again;
.reg .b32 %count<3>; .reg .b32 %thread; .reg .b32 %lane; .reg .b32 %flag;
.reg .b64 %in; .reg .b64 %out; .reg .b64 %own; .reg .b64 %all; .reg .b64 %wide;
.reg .b64 %deep; .reg .b64 %tile; .reg .b32 %near; .reg .b32 %other; .reg .b32 %step;
.reg .b32 %m<24>; .reg .f32 %mf<24>; .reg .f64 %md<24>;
.shared .align 16 .b8 near[{64 * THREADS}];
.local .align 16 .b8 deep[64];
mov.u32 %thread, %tid.x;
mov.u32 %lane, %laneid;
ld.param.u64 %in, [inputs];
ld.param.u64 %out, [outputs];
ld.param.u64 %own, [own];
ld.param.u64 %all, [all];
mov.u32 %step, %ctaid.x;
mov.u32 %flag, %ntid.x;
mad.lo.u32 %step, %step, %flag, %thread;
mul.wide.u32 %wide, %step, 8;
add.u64 %in, %in, %wide;
add.u64 %out, %out, %wide;
mul.wide.u32 %wide, %step, 64;
add.u64 %own, %own, %wide;
mul.wide.u32 %wide, %lane, 64;
sub.u64 %tile, %own, %wide;
mov.u32 %near, near;
mad.lo.u32 %near, %thread, 64, %near;
xor.b32 %other, %near, 64;
mov.u64 %deep, deep;
{
    "".join(
        f'''ld.global.v4.u32 {{%m0, %m1, %m2, %m3}}, [%own+{place}];
st.shared.v4.u32 [%near+{place}], {{%m0, %m1, %m2, %m3}};
st.local.v4.u32 [%deep+{place}], {{%m0, %m1, %m2, %m3}};
'''
        for place in range(0, 64, 16)
    )
}bar.sync 0;
"""


_TAIL = "ret;\n}\n"


def rows() -> list[tuple[str, int]]:
    """The registers in the order of their rows in the buffers; a row is 8 bytes a thread."""
    return [(letter, k) for letter in TYPES for k in range(COUNT)]


def _transfer(opcode: str, used: set[str]) -> str:
    """Loads or stores the registers of `used`."""
    lines = []
    for row, (letter, k) in enumerate(rows()):
        if f"%{letter}{k}" not in used:
            continue
        offset = row * 8 * THREADS
        if opcode == "ld":
            place, value = "[%in+" + str(offset) + "]", f"%{letter}{k}"
            if letter == "p":
                lines += [f"ld.global.u32 %flag, {place};", f"setp.ne.u32 {value}, %flag, 0;"]
            else:
                lines.append(f"ld.global.b{8 * SIZES[letter]} {value}, {place};")
        else:
            place, value = "[%out+" + str(offset) + "]", f"%{letter}{k}"
            if letter == "p":
                lines.append(f"selp.u32 %flag, 1, 0, {value};")
                value = "%flag"
            lines.append(f"st.global.b{8 * SIZES[letter]} {place}, {value};")
    return "\n".join(lines) + "\n"


def _pairs(patterns: list[int]) -> list[int]:
    return [
        low | high << 16 for low, high in zip(patterns, patterns[5:] + patterns[:5], strict=True)
    ]


_FLOAT_PATTERNS = {
    "f": [0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000,
          0x3EAAAAAB, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x4F000000,
          0x4EFFFFFF, 0xCF000000, 0x5F000000, 0x3F000000, 0x3FC00000, 0x4B800001],
    "d": [0, 1 << 63, 1, (1 << 63) | 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000,
          0x3FF0000000000000, 0xBFF0000000000000, 0x3FD5555555555555, 0x7FEFFFFFFFFFFFFF,
          0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x41E0000000000000,
          0x43E0000000000000, 0x3FE0000000000000, 0x47EFFFFFF0000000, 0x36A0000000000000],
    "g": [0, 0x8000, 1, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x3555, 0x7BFF, 0xFBFF, 0x7C00,
          0xFC00, 0x7E00, 0x3800],
    "w": [0, 0x8000, 1, 0x8001, 0x007F, 0x0080, 0x3F80, 0xBF80, 0x3EAB, 0x7F7F, 0xFF7F, 0x7F80,
          0xFF80, 0x7FC0, 0x3F00],
}  # fmt: skip
_FLOAT_PATTERNS |= {"u": _pairs(_FLOAT_PATTERNS["g"]), "v": _pairs(_FLOAT_PATTERNS["w"])}


def input_rows(seed: int) -> NDArray[np.uint64]:
    """Bit patterns for each register and thread: extremes, small numbers, and any."""
    random = np.random.default_rng(seed)
    table = np.zeros((len(rows()), THREADS), np.uint64)
    for row, (letter, _) in enumerate(rows()):
        width = 8 * SIZES[letter]
        if letter == "p":
            table[row] = random.integers(0, 2, THREADS)
            continue
        edge = 1 << (width - 1)
        special = _FLOAT_PATTERNS.get(
            letter, [0, 1, 2, 31, 32, 33, 63, 64, 255, edge, edge - 1, 2 * edge - 1, 2 * edge - 2]
        )
        chosen = np.array(special, np.uint64)[random.integers(0, len(special), THREADS)]
        anything = random.integers(0, 2 * edge - 1, THREADS, np.uint64, endpoint=True)
        table[row] = np.where(random.random(THREADS) < 0.6, chosen, anything)
    return table
