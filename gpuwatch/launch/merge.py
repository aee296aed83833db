"""Several PTX modules as one, as the device linker would join them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuwatch.errors import UserError
from gpuwatch.ptx import parse
from gpuwatch.ptx.lexer import Cursor
from gpuwatch.ptx.model import Directive, Function, Module, Statement, Variable

_FILE_NUMBER = re.compile(r"(?<=\s)(\.file\s+)(\d+)|(\.loc\s+)(\d+)|(inlined_at\s+)(\d+)")
_DEBUG_LABEL = re.compile(r"\$L__info_string(\d+)")
_HEADER = ("version", "target", "address_size")
_WORD = r"(?<![\w$%.]){}(?![\w$])"


def merge(texts: Sequence[str], names: Sequence[str]) -> str:
    """One module with everything that `texts` define; `names` are theirs, for messages.

    What one module declares `.extern` and another defines becomes the same thing; of `.weak`
    definitions the first counts; names without linkage that meet are given a suffix. A single
    text is given back as it is. Raises UserError where two modules define a name visibly.
    """
    if len(texts) == 1:
        return texts[0]
    joined = _Joined()
    for number, (text, name) in enumerate(zip(texts, names, strict=True)):
        module = parse(text, name)
        private = joined.names & {one.name for one in _definitions(module) if not one.linkage}
        if number > 0 or private:
            module = parse(_with_own_numbers(text, number, joined.files, private), name)
        joined.add(module)
    return joined.text()


def _with_own_numbers(text: str, number: int, files: int, private: set[str]) -> str:
    """The text with file numbers behind the first `files` and with its own private names."""

    def moved(match: re.Match[str]) -> str:
        head = match[1] or match[3] or match[5]
        return f"{head}{int(match[2] or match[4] or match[6]) + files}"

    text = _FILE_NUMBER.sub(moved, text)
    text = _DEBUG_LABEL.sub(rf"$L__info_string\1_{number}", text)
    for name in private:
        text = re.sub(_WORD.format(re.escape(name)), f"{name}__{number}", text)
    return text


def _number(text: str) -> tuple[int, ...]:
    """The numbers in a version or target, for comparing."""
    return tuple(int(digits) for digits in re.findall(r"\d+", text))


def _definitions(module: Module) -> list[Function | Variable]:
    functions = [one for one in module.functions if one.body is not None]
    return [*functions, *(one for one in module.variables if one.linkage != "extern")]


def _head(variable: str, source: str) -> str:
    """What stands before the name in a variable's text, and holds for those behind commas too."""
    cursor = Cursor(variable, source)
    while cursor.peek().kind != "word":
        cursor.next()
    return variable[: cursor.peek().start]


@dataclass(slots=True)
class _Joined:
    """Statements of all modules so far, by what they are."""

    version: str = "0"
    target: str = "0"
    address_size: int = 64
    files: int = 0
    names: set[str] = field(default_factory=set)
    owners: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Linkage and module of each definition."""
    declarations: dict[str, str] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    debug: list[str] = field(default_factory=list)

    def add(self, module: Module) -> None:
        self.version = max(self.version, module.version, key=_number)
        self.target = max(self.target, module.target, key=_number)
        self.address_size = module.address_size
        head = ""
        for statement in module.statements:
            text = module.text[statement.start : statement.end]
            if isinstance(statement, Variable):
                head = _head(text, module.source) if text[0] != "," else head
                own = text.removeprefix(head).removeprefix(",").removesuffix(";")
                text = f"{head}{own};"
            self._add_statement(module, statement, text)
        self.files = max([self.files, *module.files])

    def _add_statement(self, module: Module, statement: Statement, text: str) -> None:
        linkage = statement.linkage if isinstance(statement, Function | Variable) else ""
        if not text.startswith(f".{linkage}"):
            text = f".{linkage} {text}"
        match statement:
            case Function(body=None) | Variable(linkage="extern"):
                self.declarations.setdefault(statement.name, text)
            case Function():
                if self._is_first(module, statement):
                    self.functions.append(text)
            case Variable():
                if self._is_first(module, statement):
                    self.variables.append(text)
            case Directive(name=name) if name in _HEADER:
                pass
            case Directive(name="file" | "section"):
                self.debug.append(text)
            case _:
                self.functions.append(text)

    def _is_first(self, module: Module, one: Function | Variable) -> bool:
        known = self.owners.get(one.name)
        if known is None:
            self.owners[one.name] = (one.linkage, module.source)
            self.names.add(one.name)
            return True
        if not {one.linkage, known[0]} & {"weak", "common"}:
            raise UserError(
                f"{known[1]} and {module.source} both define {one.name}",
                hint="make one of them static, or name only one of the files",
            )
        return False

    def text(self) -> str:
        declared = []
        for name, text in self.declarations.items():
            owner = self.owners.get(name)
            if owner is None:
                declared.append(text)
            elif text.lstrip(".").startswith(
                ("extern .func", "func", "visible .func", "weak .func")
            ):
                declared.append(re.sub(r"\.extern\b", f".{owner[0]}", text, count=1))
        header = (
            f".version {self.version}\n.target {self.target}\n.address_size {self.address_size}\n"
        )
        parts = [header, *self.variables, *declared, *self.functions, *self.debug]
        return "\n".join(parts) + "\n"
