"""Types of a kernel's own registers, scope by scope."""

from __future__ import annotations

from gpuwatch.ptx.model import RegisterDeclaration, Scope, Statement, numbered


class Declared:
    """The declarations in force while the statements of a body are seen one after the other."""

    def __init__(self) -> None:
        self._scopes: list[dict[str, tuple[str, int]]] = [{}]
        self._known: dict[str, str] = {}

    def see(self, statement: Statement) -> None:
        """Take note of a declaration, or of where a scope begins or ends."""
        self._known.clear()
        if isinstance(statement, RegisterDeclaration):
            for name, count in statement.names:
                self._scopes[-1][name] = statement.type, count
        elif isinstance(statement, Scope):
            if statement.opens:
                self._scopes.append({})
            else:
                self._scopes.pop()

    def type_of(self, name: str) -> str:
        """The declared type of a register, without its dot; "" if it is none of the body's own."""
        type_ = self._known.get(name)
        if type_ is None:
            type_ = self._known[name] = self._find(name)
        return type_

    def _find(self, name: str) -> str:
        for scope in reversed(self._scopes):
            if name in scope and not scope[name][1]:
                return scope[name][0]
            family, index = numbered(name)
            type_, count = scope.get(family, ("", 0))
            if index < count:
                return type_
        return ""
