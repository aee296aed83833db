"""Probe texts of the TOML form: PTX statements and SAVE lines, to actions."""

from __future__ import annotations

import re
from dataclasses import replace

from gpuwatch.errors import Location, UserError
from gpuwatch.probe.language import SAVE_WORDS, SPECIAL_HELPERS
from gpuwatch.probe.model import Action, Constant, Expression, Helper, If, Ptx, Read, Save, Unary
from gpuwatch.probe.reading import SourceText, mistake
from gpuwatch.ptx import parse_fragment
from gpuwatch.ptx.model import Instruction, RegisterDeclaration, Statement

Declarations = tuple[tuple[str, str, int], ...]

_SKIPPED = re.compile(r"(?:\s|//[^\n]*|/\*[\s\S]*?\*/)+")
_SAVE = re.compile(
    r"(?:@ ?(?P<negated>!?)\s?(?P<guard>[%$\w]+)\s)?"
    r"\bSAVE\s?\[\s?(?P<map>[^\s\[\]]+)\s?\]\s?\{(?P<values>[^{}]*)\}\s?;?"
)
_SAVE_WORD = re.compile(r"\bSAVE\b")
_SAVE_HINT = "write SAVE [ map ] { %NR0, %NR1 };"
_REGISTER = re.compile(r"%[A-Za-z_$][\w$]*(?:\.[xyzw])?")
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,19})")


def read_body(
    source: SourceText, text: str, start: int, end: int
) -> tuple[tuple[Action, ...], Declarations]:
    """The actions of a probe text, and the registers that it declares.

    `text` is the value, `start`..`end` the span of the file that it was read from. Places are
    exact where the two agree; all of a text with escapes is placed at its beginning.
    """
    return _BodyReader(source, text, start, source.text[start:end] == text).read()


class _BodyReader:
    """Reads the code of a text, in which one blank or line break stands for each run of white
    space and comments; `_origin` is where each character of the code stands in the text."""

    def __init__(self, source: SourceText, text: str, start: int, exact: bool) -> None:
        self._source = source
        self._start = start
        self._exact = exact
        self._declarations: list[tuple[str, str, int]] = []
        pieces: list[str] = []
        self._origin: list[int] = []
        position = 0
        for match in _SKIPPED.finditer(text):
            pieces += [text[position : match.start()], "\n" if "\n" in match[0] else " "]
            self._origin += range(position, match.start() + 1)
            position = match.end()
        pieces.append(text[position:])
        self._origin += range(position, len(text) + 1)
        self._code = "".join(pieces)

    def read(self) -> tuple[tuple[Action, ...], Declarations]:
        actions: list[Action] = []
        position = 0
        for match in _SAVE.finditer(self._code):
            actions += self._run(position, match.start())
            actions.append(self._save(match))
            position = match.end()
        actions += self._run(position, len(self._code))
        return tuple(actions), tuple(self._declarations)

    def _at(self, offset: int) -> Location:
        """The place in the file of a character of the code."""
        return self._source.at(self._start + self._origin[offset] * self._exact)

    def _run(self, start: int, end: int) -> list[Action]:
        """The statements between two saves: one action, none if only declarations."""
        code = self._code[start:end]
        if save := _SAVE_WORD.search(code):
            raise mistake("this SAVE is not complete", self._at(start + save.start()), _SAVE_HINT)
        instructions = []
        for statement in self._statements(code, start):
            if isinstance(statement, Instruction):
                instructions.append(statement)
            elif isinstance(statement, RegisterDeclaration):
                self._declarations += [(statement.type, *name) for name in statement.names]
            else:
                raise mistake(
                    f"a probe cannot hold a {type(statement).__name__.lower()}",
                    self._at(start + statement.start),
                    "a probe holds .reg declarations, instructions and SAVE lines",
                )
        return [self._ptx(code, instructions, start)] if instructions else []

    def _statements(self, code: str, start: int) -> list[Statement]:
        try:
            found = parse_fragment(code, self._source.file)
            for statement in found:
                if isinstance(statement, Instruction):
                    _ = statement.operands  # read here, so that a mistake in them shows here
        except UserError as error:
            at = error.at or Location(self._source.file, 1)
            before = code.split("\n")[: at.line - 1]
            offset = sum(len(line) + 1 for line in before) + at.column - 1
            raise mistake(error.message, self._at(start + offset), error.hint) from error
        return found

    def _ptx(self, code: str, run: list[Instruction], start: int) -> Ptx:
        lines: list[str] = []
        moved: list[Instruction] = []
        length = 0
        for instruction in run:
            line = code[instruction.start : instruction.end]
            moved.append(
                Instruction(
                    length,
                    length + len(line),
                    instruction.guard,
                    instruction.tokens,
                    instruction.operands,
                )
            )
            lines.append(line)
            length += len(line) + 1
        places = tuple([self._at(start + instruction.start) for instruction in run])
        return Ptx("\n".join(lines), tuple(moved), at=places[0], places=places)

    def _save(self, match: re.Match[str]) -> Action:
        at = self._at(match.start())
        values: list[Expression] = []
        position = match.start("values")
        for part in match["values"].split(","):
            offset = position + len(part) - len(part.lstrip())
            values.append(self._operand(part.strip(), offset))
            position += len(part) + 1
        save = Save(match["map"], tuple(values), at)
        if match["guard"] is None:
            return save
        guard: Expression = Read(match["guard"])
        return If(Unary("not", guard) if match["negated"] else guard, (save,), (), at)

    def _operand(self, text: str, offset: int) -> Expression:
        if text in SAVE_WORDS:
            return Helper(SAVE_WORDS[text])
        if text in SPECIAL_HELPERS:
            return Helper(SPECIAL_HELPERS[text])
        if _REGISTER.fullmatch(text):
            return Read(text)
        if _NUMBER.fullmatch(text):
            return Constant(int(text, 16 if "x" in text.lower() else 10))
        raise mistake(
            f"{text!r} cannot be saved", self._at(offset), "save registers: " + _SAVE_HINT[6:]
        )


def declare(
    actions: tuple[Action, ...], declarations: Declarations, at: Location
) -> tuple[Action, ...]:
    """The actions, with the declarations in the first run of PTX; if there is none, in a new one
    that stands at `at`."""
    if not declarations:
        return actions
    for number, action in enumerate(actions):
        if isinstance(action, Ptx):
            declaring = replace(action, declarations=declarations)
            return (*actions[:number], declaring, *actions[number + 1 :])
    return (Ptx("", (), declarations, at), *actions)
