"""The table of what the simulated device executes: opcode by type, and how each is checked.

`python tests/device/coverage_table.py` writes gpuwatch/device/sim/COVERAGE.md anew.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

from random_programs import COMPUTING, MEMORY_FORMS, WARP_FORMS
from random_programs_floats import APPROXIMATE_FORMS

from gpuwatch.device.sim.codegen import OPCODES
from gpuwatch.device.sim.control import ENDS
from gpuwatch.device.sim.refused import REFUSED

PAGE = Path(__file__).parents[2] / "gpuwatch" / "device" / "sim" / "COVERAGE.md"

COLUMNS = ["pred", "b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64",
           "f16", "bf16", "f16x2", "bf16x2", "f32", "f64"]  # fmt: skip
_CONVERTED = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64",
              "tf32", "f16x2", "bf16x2", "e4m3x2", "e5m2x2"]  # fmt: skip
_OPCODE = re.compile(r"^([a-z][a-z0-9]*)((?:\.[\w:]+)*)")


def instructions(forms: list[str]) -> list[tuple[str, tuple[str, ...]]]:
    """(opcode, its other parts) of every line of the forms."""
    found = []
    for form in forms:
        for line in form.split(";\n"):
            match = _OPCODE.match(line)
            assert match is not None, line
            found.append((match[1], tuple(match[2].split(".")[1:])))
    return found


def _marks(forms: list[str], mark: str, table: dict[str, dict[str, str]]) -> None:
    for opcode, parts in instructions(forms):
        kind = next((part for part in reversed(parts) if part in COLUMNS), "")
        table[opcode].setdefault(kind, mark)


def _rows(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _by_type() -> str:
    table: dict[str, dict[str, str]] = defaultdict(dict)
    _marks([*COMPUTING, *MEMORY_FORMS, *WARP_FORMS], "=", table)
    _marks(APPROXIMATE_FORMS, "~", table)
    for opcode in ("cvt", "mma", "wmma"):
        del table[opcode]
    rows = []
    for opcode in sorted(table):
        marks = table[opcode]
        alone = "" not in marks or len(marks) > 1
        cells = [marks.get(kind, "") for kind in COLUMNS]
        rows.append([f"`{opcode}`", *cells, "" if alone else marks[""]])
    return _rows(["", *COLUMNS, "no type"], rows)


def _conversions() -> str:
    pairs = set()
    for opcode, parts in instructions(COMPUTING):
        if opcode == "cvt" and "pack" not in parts:
            to, come = [part for part in parts if part in _CONVERTED][:2]
            pairs.add((to, come))
    rows = [[f"to `{to}`", *("=" if (to, come) in pairs else "" for come in _CONVERTED)]
            for to in _CONVERTED if any(pair[0] == to for pair in pairs)]  # fmt: skip
    return _rows(["from", *_CONVERTED], rows)


def _matrices() -> str:
    rows = []
    for form in WARP_FORMS:
        for line in form.split(";\n"):
            opcode = line.split()[0]
            if opcode.startswith(("mma.", "wmma.mma.")):
                parts = opcode.split(".")
                floating = any(part in ("f16", "f32", "f64") for part in parts)
                mark = "~ order of the sum" if floating else "="
                rows.append([f"`{opcode}`", mark])
    return _rows(["product", ""], sorted(rows))


def _others() -> str:
    """Opcodes that no random program holds."""
    seen = {opcode for opcode, _ in instructions([*COMPUTING, *MEMORY_FORMS, *WARP_FORMS,
                                                  *APPROXIMATE_FORMS])}  # fmt: skip
    known = {name for name in (*OPCODES, *ENDS) if name[0].isalpha()}
    return ", ".join(f"`{name}`" for name in sorted(known - seen - REFUSED.keys()))


def page() -> str:
    count = len({*COMPUTING, *MEMORY_FORMS, *WARP_FORMS})
    refused = _rows(["opcode", "why not"], [[f"`{name}`", why] for name, why in REFUSED.items()])
    return f"""# What the simulated device executes

Made by `tests/device/coverage_table.py`; a test holds it to the code. `=`: equal bit for bit to the
reference interpreter in random programs ({count} forms, with every rounding mode and modifier).
`~`: runs, and is an approximation on the hardware too.

## By type

{_by_type()}
## Conversions (`cvt`)

{_conversions()}
In every rounding mode, with `.sat`, `.ftz`, `.relu` and `.satfinite` where PTX has them, and
`cvt.pack`.

## Products of matrices

{_matrices()}
## Without random programs

Checked by kernels of their own: {_others()}.

## Refused

{refused}
Forms that are refused though their opcode is known: `cp.async.bulk`, `red.async`, `st.async`,
`st.bulk`, `mma.sp`, anything of type `b128`, `ldmatrix` of other than 8x8 tiles of 16 bits,
`isspacep.const`.
"""


if __name__ == "__main__":
    PAGE.write_text(page())
