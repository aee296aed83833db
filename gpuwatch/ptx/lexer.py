"""The lexer: one compiled pattern, and a cursor that the recursive descent walks with."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from gpuwatch.errors import Location, UserError

TRIVIA_PATTERN = r"(?:\s+|//[^\n]*|/\*[\s\S]*?\*/)"
TRIVIA = re.compile(TRIVIA_PATTERN + "*+", re.ASCII)

_TOKEN = re.compile(
    TRIVIA_PATTERN
    + r"""*+(?:
      (?P<number>
          0[fF][0-9a-fA-F]{8}(?![\w$])
        | 0[dD][0-9a-fA-F]{16}(?![\w$])
        | 0[xX][0-9a-fA-F]+U?(?![\w$])
        | 0[bB][01]+U?(?![\w$])
        | \d+(?:\.\d*)?[eE][+-]?\d+(?![\w$])
        | \d+\.\d*(?![\w$])
        | \.\d+(?:[eE][+-]?\d+)?(?![\w$])
        | (?:0[0-7]*|[1-9]\d*)U?(?![\w$.])
      )
    | (?P<word>[A-Za-z_$%][\w$]*(?:(?:\.|::)\w+)*)
    | (?P<directive>\.[A-Za-z_]\w*)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<mark>[,;:{}()\[\]<>=+\-|!@~*?&^]|/(?!\*))
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.ASCII,
)


_TOO_LARGE = 1 << 64
_LONGEST_NUMBER = 1000
"""Characters of a literal; far longer ones are no numbers that anyone wrote."""


class Token(NamedTuple):
    """`kind` is number, word, directive (`.name`), string, mark or end."""

    kind: str
    text: str
    start: int
    end: int


class Cursor:
    """Reads tokens of `text` from `position` on.

    `line_offset` is added to the line numbers of errors: for a fragment of a larger file.
    """

    __slots__ = ("_ahead", "line_offset", "position", "source", "text")

    def __init__(self, text: str, source: str, position: int = 0, line_offset: int = 0) -> None:
        self.text = text
        self.source = source
        self.position = position
        self.line_offset = line_offset
        self._ahead: Token | None = None

    def fork(self, position: int) -> Cursor:
        """A cursor of its own on the same text."""
        return Cursor(self.text, self.source, position, self.line_offset)

    def peek(self) -> Token:
        """The next token; raises UserError where there is none that PTX knows."""
        ahead = self._ahead
        if ahead is None or ahead.end < self.position:
            ahead = self._ahead = self._read()
        return ahead

    def _read(self) -> Token:
        match = _TOKEN.match(self.text, self.position)
        if match is None or match.lastgroup is None:
            self._fail_unknown()
        kind = match.lastgroup
        start, end = match.span(kind)
        return Token(kind, match[kind], start, end)

    def _fail_unknown(self) -> NoReturn:
        trivia = TRIVIA.match(self.text, self.position)
        at = trivia.end() if trivia else self.position
        rest = self.text[at : at + 2]
        if rest == "/*":
            self.fail("comment without end", at, "close it with */")
        if rest[0] == '"':
            self.fail("string without end on its line", at, 'close it with "')
        if rest[0] in "0123456789":
            self.fail("malformed number", at, "PTX numbers: 12, 0x1F, 0b101, 1.5, 0f3F800000")
        self.fail(f"unexpected character {rest[0]!r}", at, "remove it; PTX text is plain ASCII")

    def next(self) -> Token:
        token = self.peek()
        self.position = token.end
        self._ahead = None
        return token

    def seek(self, position: int) -> None:
        self.position = position
        self._ahead = None

    def at(self, text: str) -> bool:
        token = self.peek()
        return token.text == text and token.kind != "string"

    def take(self, text: str) -> bool:
        """Consumes the next token when it reads `text`."""
        if self.at(text):
            self.next()
            return True
        return False

    def expect(self, text: str, after: str) -> Token:
        """Consumes `text`; else an error that says what it was expected after."""
        if not self.at(text):
            self.unexpected(f"'{text}' after {after}")
        return self.next()

    def expect_kind(self, kind: str, what: str) -> Token:
        if self.peek().kind != kind:
            self.unexpected(what)
        return self.next()

    def integer(self, what: str) -> int:
        """A non-negative integer literal."""
        token = self.expect_kind("number", what)
        value = self.value(token)
        if isinstance(value, float) or token.text[:2].lower() in ("0f", "0d"):
            self.fail(f"expected {what}, found {token.text}", token.start, "write a whole number")
        return value

    def value(self, token: Token) -> int | float:
        """The value of a number token; whole numbers and bit patterns have at most 64 bits."""
        value = number(token.text) if len(token.text) <= _LONGEST_NUMBER else _TOO_LARGE
        if isinstance(value, int) and value >= _TOO_LARGE:
            self.fail("number too large", token.start, "literals have at most 64 bits")
        return value

    def unexpected(self, wanted: str) -> NoReturn:
        """Fails at the next token, or right behind the last one when the text ends there."""
        token = self.peek()
        ended = token.kind == "end"
        found = "the end of the text" if ended else repr(token.text)
        at = self.position if ended else token.start
        self.fail(f"expected {wanted}, found {found}", at, f"write {wanted} here")

    def location(self, offset: int) -> Location:
        at = Location.in_text(self.source, self.text, offset)
        return Location(at.file, at.line + self.line_offset, at.column, at.text)

    def fail(self, message: str, offset: int, hint: str) -> NoReturn:
        raise UserError(message, at=self.location(offset), hint=hint)


def number(text: str) -> int | float:
    """The value of a literal: an int, the bit pattern of `0f`/`0d` forms, a float for `1.5`."""
    digits = text.rstrip("U")
    head = digits[:2].lower()
    if head in ("0f", "0d", "0x"):
        return int(digits[2:], 16)
    if head == "0b":
        return int(digits[2:], 2)
    if "." in digits or "e" in digits or "E" in digits:
        return float(digits)
    return int(digits, 8 if digits[0] == "0" else 10)


def is_float_literal(text: str) -> bool:
    head = text[:2].lower()
    if head in ("0f", "0d"):
        return True
    return head not in ("0x", "0b") and any(mark in text for mark in ".eE")


_BRACE = re.compile(r'([{}])|"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*[\s\S]*?\*/', re.ASCII)
_HIDDEN_BY_COMMENT = re.compile(r"//[^\n{}]*+[{}]")
_HIDDEN_BY_STRING = re.compile(r'"[^"\n{}/]*+[{}/]')


def closing_brace(text: str, start: int) -> int:
    """Offset of the brace that closes the one in front of `start`; -1 without one.

    Braces of comments and strings do not count; where there may be any, a pattern looks closer.
    """
    end = _closing_brace(text, start)
    hidden = (
        text.find("/*", start, end) >= 0
        or _HIDDEN_BY_COMMENT.search(text, start, end + 1)
        or _HIDDEN_BY_STRING.search(text, start, end + 1)
    )
    if end >= 0 and not hidden:
        return end
    depth = 1
    for match in _BRACE.finditer(text, start):
        depth += _DEPTHS.get(match[0], 0)
        if depth == 0:
            return match.start()
    return -1


_DEPTHS = {"{": 1, "}": -1}


def _closing_brace(text: str, start: int) -> int:
    """The same, every brace taken for one."""
    depth = 1
    position = start
    while True:
        end = text.find("}", position)
        if end < 0:
            return -1
        depth += text.count("{", position, end) - 1
        if depth == 0:
            return end
        position = end + 1
