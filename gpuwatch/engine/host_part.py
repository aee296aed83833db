"""What of a CUDA source can decide how its kernels are launched: all but the bodies of device
functions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_TOKEN = re.compile(
    r"""
      (?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<raw>R"[^(\s]*\()
    | (?P<quoted>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
    | (?P<mark>\b(?:__global__|__device__|__host__)\b)
    | (?P<sign>[{}();=])
    """,
    re.X | re.S | re.M,
)


def host_part(files: Iterable[Path]) -> str | None:
    """The texts of `files` without the bodies of functions that only a device runs, and without
    comments; directives stay. None for a text that cannot be read or told apart."""
    parts = []
    for file in sorted(files):
        try:
            part = _without_bodies(file.read_text(errors="replace"))
        except OSError:
            return None
        if part is None:
            return None
        parts.append(f"{file}\n{part}")
    return "\n".join(parts)


class _Declarations:
    """Follows marks and brackets to where a body of device code begins and ends."""

    def __init__(self) -> None:
        self.marks: set[str] = set()
        self.parens = 0
        self.depth = 0
        """Of braces inside such a body; 0 outside."""
        self._last = ""
        """The sign before: parameters end before a body, but not before a variable's values."""

    def mark(self, word: str) -> None:
        if self.depth == 0:
            self.marks.add(word)

    def sign(self, sign: str) -> None:
        last, self._last = self._last, sign
        if self.depth:
            self.depth += {"{": 1, "}": -1}.get(sign, 0)
            if self.depth == 0:
                self.marks = set()
            return
        self.parens += {"(": 1, ")": -1}.get(sign, 0)
        if self.parens:
            return
        if sign == "{" and last == ")" and self.marks and "__host__" not in self.marks:
            self.depth = 1
        elif sign in "{};=":
            self.marks = set()


def _without_bodies(text: str) -> str | None:
    state, kept, at = _Declarations(), [], 0
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "raw":
            return None
        inside = state.depth > 0
        if not inside:
            kept.append(text[at : token.start()])
        if kind == "mark":
            state.mark(token[0])
        elif kind == "sign":
            state.sign(token[0])
        if kind == "directive":
            kept.append(f"\n{token[0]}\n")
        elif kind != "comment" and not (inside and state.depth > 0):
            kept.append(token[0])
        at = token.end()
    kept.append(text[at:])
    return re.sub(r"\s+", " ", "".join(kept))
