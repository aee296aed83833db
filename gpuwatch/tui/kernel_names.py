"""Demangled names of kernels, cut so that what tells them apart is still there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_SCOPE = re.compile(r"\b[A-Za-z_]\w*::")
_CAST = re.compile(r"\((?:bool|char|short|int|long|unsigned(?: \w+)*|long long)\)(?=[-\d])")
_HEAD = re.compile(r"\b([A-Za-z_]\w{3,})\s*[<(]")
_PLAIN = re.compile(
    r"-?\d+\w*|true|false|void|bool|char|short|int|long|float|double|unsigned|signed|const|"
    r"half|__half|__nv_bfloat16|lambda|operator|array|tuple|pair"
)
"""Words of an argument that many kernels share."""
_OPENING, _CLOSING = "<({[", ">)}]"
_LEAST_BASE = 10
"""Cells below which the beginning of a name says nothing."""


def shorten_signature(name: str) -> str:
    """A demangled name without its parameter list."""
    depth = 0
    for index, char in enumerate(name):
        depth += (char == "<") - (char == ">")
        if char == "(" and depth == 0 and index > 0 and not name.startswith("(", index - 1):
            return name[:index]
    return name


@lru_cache(maxsize=8192)
def plain_name(name: str) -> str:
    """A demangled name without parameters and the namespaces in it."""
    text = _CAST.sub("", _SCOPE.sub("", shorten_signature(name)))
    return re.sub(r">\s+(?=>)", ">", text)


@lru_cache(maxsize=8192)
def fitted_name(name: str, width: int, ellipsis: str) -> str:
    """A demangled name in at most `width` cells: template arguments lose their own arguments
    first, then go themselves; one that many kernels do not share stays as long as it can."""
    text = plain_name(name)
    if len(text) <= width:
        return text
    base, arguments = _split(text)
    if not arguments:
        return cut_within(text, width, ellipsis)
    for depth in (2, 1, 0):
        brief = [_emptied(argument, depth, ellipsis) for argument in arguments]
        text = f"{base}<{', '.join(brief)}>"
        if len(text) <= width:
            return text
    return (
        _first_few(base, brief, width, ellipsis)
        or _most_telling(base, arguments, width, ellipsis)
        or cut_within(base, width, ellipsis)
    )


def cut_within(text: str, width: int, ellipsis: str) -> str:
    """`text` in at most `width` cells, with its beginning and its end."""
    if len(text) <= width:
        return text
    room = max(0, width - len(ellipsis))
    end = room // 3
    return (text[: room - end] + ellipsis + text[len(text) - end :])[: max(0, width)]


def _split(text: str) -> tuple[str, list[str]]:
    """Name and template arguments."""
    if not text.endswith(">"):
        return text, []
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        depth += (text[index] == ">") - (text[index] == "<")
        if depth == 0:
            return text[:index], list(_arguments(text[index + 1 : -1]))
    return text, []


def _arguments(text: str) -> Iterator[str]:
    depth = begin = 0
    for index, char in enumerate(text):
        depth += (char in _OPENING) - (char in _CLOSING)
        if char == "," and depth == 0:
            yield text[begin:index].strip()
            begin = index + 1
    yield text[begin:].strip()


def _emptied(text: str, deepest: int, ellipsis: str) -> str:
    """`text` with an ellipsis for what stands in more than `deepest` brackets. Those of a cast
    or around a lambda do not count."""
    kept: list[str] = []
    counted: list[bool] = []
    for index, char in enumerate(text):
        if char in _CLOSING and counted:
            counted.pop()
        if sum(counted) <= deepest:
            kept.append(char)
        if char in _OPENING:
            counted.append(char in "<(" and re.match(r"[\w>]", text[index - 1 : index]) is not None)
            empty = text[index + 1 : index + 2] in _CLOSING
            if counted[-1] and sum(counted) == deepest + 1 and not empty:
                kept.append(ellipsis)
    return "".join(kept)


def _first_few(base: str, brief: list[str], width: int, ellipsis: str) -> str:
    """As many of the arguments as fit, "" where a telling one stands behind those."""
    for count in range(len(brief) - 1, 0, -1):
        text = f"{base}<{', '.join(brief[:count])}, {ellipsis}>"
        if len(text) <= width:
            left_out = not any(map(_telling, brief[:count])) and any(map(_telling, brief))
            return "" if left_out else text
    return ""


def _telling(argument: str) -> bool:
    return any(not _PLAIN.fullmatch(word) for word in re.findall(r"\w+", argument))


def _most_telling(base: str, arguments: list[str], width: int, ellipsis: str) -> str:
    """The innermost class among the arguments, "" where it has no room."""
    words = [word for argument in arguments for word in _heads(argument)]
    if not words:
        words = [(0, one) for one in arguments if _telling(one)]
    if not words:
        brief = f"{base}<{ellipsis}>"
        return brief if len(brief) <= width else ""
    _, word = max(words, key=lambda found: found[0])
    room = width - len(word) - len(ellipsis) * 2 - 2
    if room >= min(len(base), _LEAST_BASE):
        return f"{cut_within(base, room, ellipsis)}<{ellipsis}{word}{ellipsis}>"
    room = width - len(base) - 2
    return f"{base}<{cut_within(word, room, ellipsis)}>" if room >= _LEAST_BASE else ""


def _heads(argument: str) -> Iterator[tuple[int, str]]:
    """Words in front of a bracket, and in how many `<` each stands."""
    for found in _HEAD.finditer(argument):
        before = argument[: found.start()]
        if not _PLAIN.fullmatch(found[1]):
            yield before.count("<") - before.count(">"), found[1]
