"""Python text to its syntax tree, from any thread.

CPython 3.11 keeps count of a tree's depth where all threads see it: of two that parse at once one
may end in "AST constructor recursion depth mismatch".
"""

from __future__ import annotations

import ast
import threading
import warnings

_one_at_a_time = threading.Lock()


def module_tree(text: str) -> ast.Module:
    """Of a whole file, without warnings. Raises as `ast.parse` does."""
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def expression_tree(text: str) -> ast.expr:
    """Of one expression, without warnings. Raises as `ast.parse` does."""
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode="eval").body
