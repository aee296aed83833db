"""Where a woven kernel finds the addresses of its maps."""

from __future__ import annotations

import re

from gpuwatch.instrument.edits import Edits
from gpuwatch.instrument.scene import Shared
from gpuwatch.ptx.model import Directive, Function, Module
from gpuwatch.ptx.parameters import block_bytes
from gpuwatch.ptx.types import type_bytes

_HEADER = frozenset({"version", "target", "address_size"})
_POINTER_BYTES = 8
_CONSTANT_BYTES = 64 << 10
_PARAMETER_BYTES = 4096
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def pointer_space(module: Module, entry: Function, buffers: int, alone: bool) -> str:
    """The kernel's parameters, which are there when it begins, unless probes stand in functions
    too, which do not see them; then constant memory, whose loads are the quickest of all others.
    Where one has no room (4096 bytes and 64 KB, CUDA programming guide, "Technical
    Specifications"), the next; last global memory."""
    wanted = _POINTER_BYTES * buffers
    given = _padded(block_bytes(entry.parameters))
    if alone and _is_declared_once(module, entry) and given + wanted <= _PARAMETER_BYTES:
        return "param"
    constants = [one for one in module.variables if one.space == "const"]
    taken = sum(_padded(type_bytes(one.type) * max(1, one.count)) for one in constants)
    return "const" if taken + wanted <= _CONSTANT_BYTES else "global"


def declare_pointers(
    edits: Edits, module: Module, entry: Function, shared: Shared, buffers: int
) -> None:
    """Puts the declaration into the module: an array of so many addresses."""
    if not buffers:
        return
    name = shared.variable
    if shared.pointer_space == "param":
        _add_parameter(edits, module, entry, parameter(name) + f"{_POINTER_BYTES * buffers}]")
        return
    end = max(
        one.end for one in module.statements if isinstance(one, Directive) and one.name in _HEADER
    )
    edits.after(end, f".visible .{shared.pointer_space} .align 8 .u64 {name}[{buffers}];")


def parameter(name: str) -> str:
    """How the declaration of a parameter begins that holds the addresses."""
    return f".param .align {_POINTER_BYTES} .b8 {name}["


def _add_parameter(edits: Edits, module: Module, entry: Function, declaration: str) -> None:
    text = module.text
    opening = _COMMENT.sub(lambda one: " " * len(one[0]), text[entry.start : entry.body_start])
    found = re.search(rf"\.entry\s+{re.escape(entry.name)}(?![\w$])\s*(\([^)]*)?", opening)
    assert found, entry.name
    if found[1] is None:
        edits.before(entry.start + found.end(), f"({declaration})")
    else:
        comma = ", " if entry.parameters else ""
        edits.before(entry.start + found.end(), f"\t{comma}{declaration}")


def _is_declared_once(module: Module, entry: Function) -> bool:
    """Whether no other declaration would have to be the same."""
    same = [one for one in module.statements if isinstance(one, Function)]
    return sum(one.name == entry.name for one in same) == 1


def _padded(size: int) -> int:
    return -(-size // _POINTER_BYTES) * _POINTER_BYTES
