"""Probe texts of the TOML form: PTX statements and SAVE lines, to actions."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import groupby

from gpuwatch.errors import Location, UserError
from gpuwatch.probe.language import SAVE_WORDS, SPECIAL_HELPERS
from gpuwatch.probe.model import Action, Constant, Expression, Helper, If, Ptx, Read, Save, Unary
from gpuwatch.probe.reading import SourceText, mistake
from gpuwatch.ptx import parse_fragment
from gpuwatch.ptx.model import Instruction, RegisterDeclaration, Statement

Declarations = tuple[tuple[str, str, int], ...]

_COMMENT = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/")
_NOT_BREAK = re.compile(r"[^\n]")
_SAVE = re.compile(
    r"(?:@\s*(?P<negated>!?)\s*(?P<guard>[%$\w]+)\s+)?"
    r"\bSAVE\s*\[\s*(?P<map>[^\s\[\]]+)\s*\]\s*\{(?P<values>[^{}]*)\}\s*;?"
)
_SAVE_WORD = re.compile(r"\bSAVE\b")
_SAVE_HINT = "write SAVE [ map ] { %NR0, %NR1 };"
_REGISTER = re.compile(r"%[A-Za-z_$][\w$]*(?:\.[xyzw])?")
_NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,19})")


@dataclass(frozen=True, slots=True)
class _Placed:
    """A save with the offset of its text in the file."""

    start: int
    action: Action


def read_body(
    source: SourceText, text: str, start: int, end: int
) -> tuple[tuple[Action, ...], Declarations]:
    """The actions of a probe text, and the registers that it declares.

    `text` is the value, `start`..`end` the span that it was read from. Places are exact where
    the two agree; a text with escapes is placed at its beginning.
    """
    written = source.text[start:end].replace("\r\n", "\n")
    reader = _BodyReader(source, start) if written == text else _BodyReader(source, start, text)
    return reader.read(start, end)


class _BodyReader:
    """Reads the text in a copy of the file in which all else is blank: offsets stay right."""

    def __init__(self, source: SourceText, start: int, escaped: str | None = None) -> None:
        self._source = source
        self._start = start
        self._escaped = escaped

    def read(self, start: int, end: int) -> tuple[tuple[Action, ...], Declarations]:
        whole = self._source.text
        if self._escaped is None:
            text = _blank(whole[:start]) + whole[start:end] + _blank(whole[end:])
        else:
            text = self._escaped
        code = _COMMENT.sub(lambda match: _blank(match[0]), text)
        saves = [_Placed(m.start(), self._save(m)) for m in _SAVE.finditer(code)]
        code = _SAVE.sub(lambda match: _blank(match[0]), code)
        if rest := _SAVE_WORD.search(code):
            raise mistake("this SAVE is not complete", self._at(rest.start()), _SAVE_HINT)
        statements, declarations = self._statements(code)
        return self._actions(code, statements, saves), declarations

    def _at(self, offset: int) -> Location:
        return self._source.at(offset if self._escaped is None else self._start)

    def _statements(self, code: str) -> tuple[list[Instruction], Declarations]:
        try:
            found = parse_fragment(code, self._source.file)
            instructions = [one for one in found if isinstance(one, Instruction)]
            for instruction in instructions:
                _ = instruction.operands  # read here, so that a mistake in them shows here
        except UserError as error:
            if error.at is None:
                raise
            line, column = error.at.line, error.at.column
            lines = code.split("\n")[: line - 1]
            offset = sum(len(one) + 1 for one in lines) + column - 1
            raise mistake(error.message, self._at(offset), error.hint) from error
        declarations = [one for one in found if isinstance(one, RegisterDeclaration)]
        for statement in found:
            if not isinstance(statement, Instruction | RegisterDeclaration):
                raise self._refused(statement)
        return instructions, tuple(
            [(one.type, name, count) for one in declarations for name, count in one.names]
        )

    def _refused(self, statement: Statement) -> UserError:
        return mistake(
            f"a probe cannot hold a {type(statement).__name__.lower()}",
            self._at(statement.start),
            "a probe holds .reg declarations, instructions and SAVE lines",
        )

    def _actions(
        self, code: str, instructions: list[Instruction], saves: list[_Placed]
    ) -> tuple[Action, ...]:
        """Saves, and the runs of instructions between them, in the order of the text."""
        actions: list[Action] = []
        items: list[Instruction | _Placed] = sorted(
            [*instructions, *saves], key=lambda item: item.start
        )
        for is_save, run in groupby(items, key=lambda item: isinstance(item, _Placed)):
            if is_save:
                actions += [item.action for item in run if isinstance(item, _Placed)]
            else:
                actions.append(self._ptx(code, [i for i in run if isinstance(i, Instruction)]))
        return tuple(actions)

    def _ptx(self, code: str, run: list[Instruction]) -> Ptx:
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
        places = tuple([self._at(instruction.start) for instruction in run])
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


def _blank(text: str) -> str:
    return _NOT_BREAK.sub(" ", text)


def declare(actions: tuple[Action, ...], declarations: Declarations) -> tuple[Action, ...]:
    """The actions, with the declarations in the first run of PTX (a new one if there is none)."""
    if not declarations:
        return actions
    for number, action in enumerate(actions):
        if isinstance(action, Ptx):
            declaring = replace(action, declarations=declarations)
            return (*actions[:number], declaring, *actions[number + 1 :])
    return (Ptx("", (), declarations), *actions)
