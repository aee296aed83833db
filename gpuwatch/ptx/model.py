"""The model of a PTX module: nodes that know their span in the text they were read from.

The text is the truth: nodes carry offsets into `Module.text`, statements of a function tile its
body without gaps, and a change is a set of insertions and replacements at offsets. So what is
not touched comes out byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING


@dataclass(frozen=True, slots=True)
class Register:
    """A register operand, special registers (`%tid.x`) included."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal. `value` is an int, the bit pattern (an int) of the `0f`/`0d` forms, or a float
    for `1.5`; `is_float` holds for the last two."""

    text: str
    value: int | float
    is_float: bool = False


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name that is no register of the function: variable, label, function; plus an offset."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`; base is a register, a symbol or an absolute number (Immediate)."""

    base: Register | Symbol | Immediate
    offset: int = 0
    unified: bool = False
    """Whether `.unified` stands behind the bracket."""


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, ...}`, and `{a, b, ...}|p` with `predicate` p."""

    items: tuple[Operand, ...]
    predicate: Register | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`: two destinations."""

    first: Register
    second: Register


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p` as an operand."""

    register: Register


@dataclass(frozen=True, slots=True)
class Group:
    """`( a, b )`: argument or result list of a call, or a bracketed list `[a, {b, c}]`."""

    items: tuple[Operand, ...]


Operand = Register | Immediate | Symbol | Address | Vector | Pair | Negated | Group


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p`."""

    register: str
    negated: bool = False


@dataclass(slots=True)
class Statement:
    """`start`..`end` are offsets into the module's text, leading white space left out."""

    start: int
    end: int


@dataclass(slots=True)
class Instruction(Statement):
    """`tokens` is the opcode split at its dots: ("ld", "global", "nc", "f32")."""

    guard: Guard | None
    tokens: tuple[str, ...]
    operands: tuple[Operand, ...]
    line: int = 0
    """Line of the source file by the last `.loc`, 0 when there is none."""
    file: int = 0
    """File index of that `.loc`."""
    _read: Callable[[Instruction], tuple[Operand, ...]] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    @property
    def opcode(self) -> str:
        return self.tokens[0]

    if not TYPE_CHECKING:  # so that misspelt attributes stay type errors

        def __getattr__(self, name: str) -> object:
            """Reads the operands when they are first asked for: their slot is empty until then."""
            if name != "operands" or self._read is None:
                raise AttributeError(name, name=name, obj=self)
            self.operands = self._read(self)
            self._read = None
            return self.operands


@dataclass(slots=True)
class Label(Statement):
    name: str


@dataclass(slots=True)
class RegisterDeclaration(Statement):
    """`.reg .b32 %r<10>, %x;`: type without dot, and each (name, count); count 0 = plain name."""

    type: str
    names: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class Variable(Statement):
    """A `.global/.const/.shared/.local/.param` variable; `count` elements, 0 for `[]`.

    `.shared .f32 a, b;` gives two nodes: the second one's span begins at the comma.
    """

    space: str
    type: str
    name: str
    align: int
    count: int
    initial: str = ""
    """Text after `=`, white space stripped; "" when there is none."""
    linkage: str = ""
    """"visible", "extern", "weak", "common" or ""."""

    dims: tuple[int, ...] = ()


@dataclass(slots=True)
class Loc(Statement):
    """`.loc`; `inlined_at` is the (file, line, column) that the code was inlined into."""

    file: int
    line: int
    column: int
    function: str = ""
    """The label of the inlined function's name in `.debug_str`."""
    inlined_at: tuple[int, int, int] | None = None


@dataclass(slots=True)
class Scope(Statement):
    """`{` (opens) or `}` inside a body."""

    opens: bool


@dataclass(slots=True)
class Directive(Statement):
    """Any other dotted statement: `.pragma`, `.callprototype`, `.branchtargets`, ..."""

    name: str
    words: tuple[str, ...] = ()
    """Names behind it: the labels of `.branchtargets`, the functions of `.calltargets`,
    the two names of `.alias`."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter; `count` 0 for a scalar, else the length of its byte array."""

    name: str
    type: str
    align: int
    count: int = 0
    pointer: str = ""
    """Space that a `.ptr` parameter points into; "generic" without one, "" for no `.ptr`."""
    pointee_align: int = 0
    """Alignment in bytes of what a `.ptr` parameter points to; 0 when not given."""


@dataclass(slots=True)
class Function(Statement):
    """An `.entry` or `.func`; `body` is None for a declaration.

    The body of a parsed function is read when it is first asked for, which may raise UserError.
    `body_start` is the offset just behind the opening brace, `body_end` that of the closing one.
    """

    kind: str
    name: str
    linkage: str
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    body: list[Statement] | None
    body_start: int = 0
    body_end: int = 0
    directives: tuple[str, ...] = ()
    """Performance directives between `)` and `{`: ".maxntid 256, 1, 1", ..."""
    _read: Callable[[Function], list[Statement]] | None = field(
        default=None, init=False, repr=False, compare=False
    )

    @property
    def has_body(self) -> bool:
        """Whether this is a definition; unlike `body`, this reads nothing."""
        return self.body_start > 0

    if not TYPE_CHECKING:  # so that misspelt attributes stay type errors

        def __getattr__(self, name: str) -> object:
            """Reads the body when it is first asked for: its slot is empty until then."""
            if name != "body" or self._read is None:
                raise AttributeError(name, name=name, obj=self)
            self.body = self._read(self)
            self._read = None
            return self.body


def defer_body(function: Function, read: Callable[[Function], list[Statement]]) -> None:
    """Lets `read` give the function's body on first use."""
    del function.body
    function._read = read


@dataclass(slots=True)
class Module:
    text: str
    source: str
    """The file's name, for messages."""
    version: str
    target: str
    address_size: int
    functions: list[Function] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    files: dict[int, str] = field(default_factory=dict)
    """`.file` index to path."""
    statements: list[Statement] = field(default_factory=list)
    """Everything at the top, in order: functions and variables among directives."""

    def entries(self) -> list[Function]:
        return [f for f in self.functions if f.kind == "entry" and f.has_body]


def numbered(name: str) -> tuple[str, int]:
    """`name` as one of `family<count>`, which takes all digits as ptxas does: `x10` is ("x", 10).
    ("", 0) for a name of another form."""
    family = name.rstrip("0123456789")
    index = name[len(family) :]
    if not family or not index or len(index) > _MOST_DIGITS or (index[0] == "0" and index != "0"):
        return "", 0
    return family, int(index)


_MOST_DIGITS = 9
"""Digits of a register's number."""
