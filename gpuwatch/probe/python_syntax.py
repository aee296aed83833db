"""The syntax tree of a Python probe file: places, names behind imports, constants."""

from __future__ import annotations

import ast

from gpuwatch.errors import Location, UserError
from gpuwatch.probe.reading import SourceText, mistake
from gpuwatch.syntax import module_tree

ROOTS = ("gpuwatch", "neutrino")
MAX_DEPTH = 100
"""Nesting of statements and expressions, together."""


def syntax_tree(source: SourceText) -> ast.Module:
    """Parses, without compiling or executing; raises UserError with the place."""
    try:
        return module_tree(source.text)
    except SyntaxError as error:
        line, column = error.lineno or 1, error.offset or 1
        lines = source.text.splitlines()
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        at = Location(source.file, max(line, 1), max(column, 1), text)
        raise mistake(f"this is not Python: {error.msg}", at, "correct the syntax") from error
    except ValueError as error:
        raise mistake(
            f"this is not Python text: {error}", source.at(0), "save the file as plain UTF-8"
        ) from error
    except (RecursionError, MemoryError) as error:
        raise mistake(
            "the file is nested too deeply", source.at(0), "split long expressions"
        ) from error


class Syntax:
    """What the tree's nodes mean in one file: their place, and names resolved by its imports."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self._lines = source.text.encode("utf-8", "surrogatepass").splitlines()
        self._imports: dict[str, str] = {}

    def at(self, node: ast.AST) -> Location:
        """The place of a node; Python counts columns in bytes of UTF-8."""
        line, byte = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        raw = self._lines[line - 1] if line <= len(self._lines) else b""
        column = len(raw[:byte].decode("utf-8", "replace")) + 1
        return Location(self.source.file, line, column, raw.decode("utf-8", "replace"))

    def error(self, message: str, node: ast.AST, hint: str) -> UserError:
        return mistake(message, self.at(node), hint)

    def learn(self, node: ast.Import | ast.ImportFrom) -> None:
        """Takes note of an import of the probe language; any other is an error."""
        hint = "a probe file imports only: from gpuwatch import probe, Map / language"
        if isinstance(node, ast.ImportFrom):
            if node.level == 0 and node.module == "__future__":
                return
            module = node.module or ""
            if node.level or module.split(".")[0] not in ROOTS:
                raise self.error("a probe file cannot import other modules", node, hint)
            for alias in node.names:
                self._imports[alias.asname or alias.name] = f"{module}.{alias.name}"
            return
        for alias in node.names:
            root = alias.name.split(".")[0]
            if root not in ROOTS:
                raise self.error("a probe file cannot import other modules", node, hint)
            self._imports[alias.asname or root] = alias.name if alias.asname else root

    def resolve(self, node: ast.expr) -> str | None:
        """Name within the package of an imported thing: "Map", "language.clock"; else None."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._imports:
            return None
        path = ".".join([self._imports[node.id], *reversed(parts)])
        return path.partition(".")[2]

    def language_word(self, node: ast.expr) -> str | None:
        """`X` of `nl.X`, or None when the node is something else."""
        module, _, found = (self.resolve(node) or "").rpartition(".")
        return found if module == "language" else None

    def integer(self, node: ast.expr) -> int | None:
        """A whole-number literal with its signs, True and False included; else None."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if isinstance(node.operand, ast.Constant):
                value = self.integer(node.operand)
                return None if value is None else -value
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            return int(node.value)
        return None

    def number(self, node: ast.expr) -> float | None:
        """A literal with a decimal point or exponent, and its signs; else None."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.number(node.operand)
            return None if value is None else -value
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            return node.value
        return None

    def keywords(self, call: ast.Call, allowed: tuple[str, ...], what: str) -> dict[str, ast.expr]:
        """The keyword arguments of a decorator; raises UserError for any not `allowed`."""
        usage = f"write @{what}({', '.join(f'{name}=...' for name in allowed)})"
        if call.args:
            raise self.error(f"{what} takes keyword arguments only", call.args[0], usage)
        found: dict[str, ast.expr] = {}
        for keyword in call.keywords:
            if keyword.arg not in allowed:
                raise self.error(f"{what} has no argument {keyword.arg or '**'}", keyword, usage)
            found[keyword.arg] = keyword.value
        return found

    def literal(self, node: ast.expr) -> object:
        """A literal string, bool or whole number; raises UserError for anything else."""
        number = self.integer(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bool):
            return node.value
        if number is None:
            raise self.error("a literal is needed here", node, "write a string or a whole number")
        return number
