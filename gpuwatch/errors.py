"""The one error type that a user can cause, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a source text; line and column count from 1."""

    file: str
    line: int
    column: int = 1
    text: str = ""
    """The source line itself, without its line break."""

    @staticmethod
    def in_text(file: str, source: str, offset: int) -> Location:
        """The place of character `offset` of `source`."""
        start = source.rfind("\n", 0, offset) + 1
        end = source.find("\n", offset)
        line = source.count("\n", 0, offset) + 1
        text = source[start : end if end >= 0 else len(source)].rstrip("\r")
        return Location(file, line, offset - start + 1, text)


class UserError(Exception):
    """Something that the user can mend.

    `message` says what is wrong, `hint` what to do about it, `status` is the exit status:
    2 for bad input, 1 for a fault while running. After a `fatal` one the process can do no more
    with its device, not even free what it holds there: it has to end.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        at: Location | None = None,
        detail: str = "",
        status: int = 2,
        fatal: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.at = at
        self.detail = detail
        self.status = status
        self.fatal = fatal

    def render(self) -> str:
        """The message as plain text: place, message, source line with caret, detail, hint."""
        lines = []
        if self.at is None:
            lines.append(f"error: {self.message}")
        else:
            lines.append(f"{self.at.file}:{self.at.line}:{self.at.column}: error: {self.message}")
            if self.at.text:
                margin = f"{self.at.line:>5} | "
                shown = self.at.text.replace("\t", " ")
                lines.append(margin + shown)
                lines.append(" " * (len(margin) - 2) + "| " + " " * (self.at.column - 1) + "^")
        if self.detail:
            lines.append(self.detail.rstrip())
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles with all its parts, so that it crosses from the worker process whole."""
        return (_restore, (self.message, self.hint, self.at, self.detail, self.status, self.fatal))


def _restore(
    message: str, hint: str, at: Location | None, detail: str, status: int, fatal: bool
) -> UserError:
    return UserError(message, hint=hint, at=at, detail=detail, status=status, fatal=fatal)
