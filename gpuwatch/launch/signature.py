"""What a kernel takes: types from its demangled name, names from its source text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.launch.elements import C_TYPES, ELEMENTS, PTX_TYPES, Element
from gpuwatch.launch.expressions import outer_parts
from gpuwatch.launch.model import Dim3, ParameterSlot
from gpuwatch.launch.parameters import parameter_slots, shape_directive
from gpuwatch.ptx.model import Function, Module

_TOKEN = re.compile(r"[A-Za-z_$][\w$]*|::|\S")
_NOISE = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'|^[ \t]*#(?:\\\n|[^\n])*",
    re.S | re.M,
)
_ATTRIBUTES = frozenset(
    {"__launch_bounds__", "__cluster_dims__", "__block_size__", "__maxnreg__", "__attribute__"}
)
_TYPE_WORDS = frozenset(C_TYPES) | frozenset(
    {"void", "signed", "const", "volatile", "restrict", "__restrict__", "__restrict", "struct"}
    | {"class", "enum", "typename", "size_t", "__grid_constant__"}
)
_QUALIFIERS = re.compile(r"\b(?:const|volatile|__restrict__|__restrict|restrict)\b")
_RESTRICT = re.compile(r"\b(?:__restrict__|__restrict|restrict|__grid_constant__)\b")
_AXIS = re.compile(r"%(?:ntid|tid|ctaid|nctaid)\.([xyz])")


@dataclass(frozen=True, slots=True)
class KernelParameter:
    """`name` is "" where no source says it; `type` as in the demangled name, else PTX's."""

    position: int
    name: str
    type: str
    slot: ParameterSlot

    @property
    def is_pointer(self) -> bool:
        return self.type.endswith(("*", "&"))

    @property
    def is_const(self) -> bool:
        """Whether it points to what the kernel does not write."""
        return self.is_pointer and self.type.startswith("const ")

    @property
    def element(self) -> Element | None:
        """Type of the scalar, or of what the pointer points to; None for other types."""
        bare = _QUALIFIERS.sub("", self.type).rstrip("*& ").strip()
        name = C_TYPES.get(bare) or PTX_TYPES.get(bare.removeprefix("."))
        element = ELEMENTS[name] if name else None
        fits = element is None or self.is_pointer or element.size == self.slot.size
        return element if fits else None

    @property
    def label(self) -> str:
        """How it is named in arguments: by its source name, else by its position."""
        return self.name or str(self.position)


@dataclass(frozen=True, slots=True)
class KernelSignature:
    """`axes` counts the dimensions of the grid that the kernel asks for; `block` and `cluster`
    are those that it was compiled for, or None; `dynamic_shared` whether it uses shared memory of
    a size that the launch gives."""

    kernel: str
    """Mangled name."""
    demangled: str
    parameters: tuple[KernelParameter, ...]
    axes: int = 1
    block: Dim3 | None = None
    cluster: Dim3 | None = None
    dynamic_shared: bool = False

    def listing(self) -> str:
        """The parameters, one a line."""
        rows = (f"  {p.position}  {p.type} {p.name}".rstrip() for p in self.parameters)
        return "\n".join(rows) or "  (no parameters)"

    def find(self, label: str) -> KernelParameter:
        """The parameter of this source name or position; raises UserError with the listing."""
        for parameter in self.parameters:
            if label in (parameter.name, str(parameter.position), parameter.slot.name):
                return parameter
        base = self.demangled.partition("(")[0]
        raise UserError(
            f"{base} has no parameter {label!r}",
            detail=f"its parameters:\n{self.listing()}",
            hint="name each by its name or by its position",
        )


def read_signature(
    module: Module, kernel: str, demangled: str, sources: Iterable[Path] = ()
) -> KernelSignature:
    """The signature of the entry `kernel` (mangled) of `module`.

    Names come from the first of `sources`, or of the files that the PTX names, that defines it
    with as many parameters. Types come from `demangled`, or for names without types from PTX.
    """
    function = next(entry for entry in module.entries() if entry.name == kernel)
    slots = parameter_slots(function)
    body = module.text[function.start : function.end]
    types = _types(demangled)
    if len(types) != len(slots):
        types = [_ptx_type(slot, function, body) for slot in slots]
    texts = [*sources, *map(Path, module.files.values())]
    found = next(_found(texts, demangled, types), None)
    names = [_name(part) for part in found] if found else [""] * len(slots)
    if found and "(" not in demangled:
        types = [_written_type(*pair) for pair in zip(found, names, strict=True)]
    rows = zip(names, types, slots, strict=True)
    block = shape_directive(function, "reqntid")
    asked = [axis for axis, size in zip("xyz", block or (), strict=False) if size > 1]
    return KernelSignature(
        kernel=kernel,
        demangled=demangled,
        parameters=tuple(KernelParameter(n, *row) for n, row in enumerate(rows)),
        axes=max([1, *("xyz".index(axis) + 1 for axis in [*asked, *_AXIS.findall(body)])]),
        block=block,
        cluster=shape_directive(function, "reqnctapercluster"),
        dynamic_shared=_uses_dynamic_shared(module, body),
    )


def _types(demangled: str) -> list[str]:
    """The outer comma-separated parts of the parameter list, which stands last."""
    depth = 0
    for at in range(len(demangled) - 1, -1, -1):
        depth += (demangled[at] == ")") - (demangled[at] == "(")
        if depth == 0:
            parts = _split(demangled[at + 1 : -1]) if demangled[at] == "(" else []
            return [part for part in parts if part != "void"]
    return []


def _split(text: str) -> list[str]:
    """The parts of `text` between its outer commas, stripped; none of an empty text."""
    parts = [part.strip() for _, part in outer_parts(text, "([{<", ")]}>")]
    return parts if parts != [""] else []


def _ptx_type(slot: ParameterSlot, function: Function, body: str) -> str:
    parameter = next(p for p in function.parameters if p.name == slot.name)
    if parameter.pointer or _is_address(slot.name, body):
        return "void *"
    return f".{slot.type}[{slot.size}]" if parameter.count else f".{slot.type}"


def _is_address(name: str, body: str) -> bool:
    """Whether the parameter is loaded into a register that counts as a global address."""
    load = rf"ld\.param\.[ub]64\s+(%[\w$]+)\s*,\s*\[{re.escape(name)}\]"
    return any(
        re.search(rf"cvta\.to\.global\.u64\s+%[\w$]+\s*,\s*{re.escape(match[1])}\s*;", body)
        for match in re.finditer(load, body)
    )


def _found(sources: Iterable[Path], demangled: str, types: Sequence[str]) -> Iterator[list[str]]:
    """The parameters of the definitions in `sources` that fit, best first in each source."""
    base = re.split(r"[<(]", demangled, maxsplit=1)[0].rpartition("::")[2]
    for source in sources:
        if source.suffix == ".ptx" or not source.is_file():
            continue
        text = source.read_text(errors="replace")
        fitting = [p for name, p in _definitions(text) if name == base and len(p) == len(types)]
        yield from sorted(fitting, key=lambda parts: _likeness(parts, types), reverse=True)


def _definitions(text: str) -> Iterator[tuple[str, list[str]]]:
    """The name and the parameters' texts of every function behind a `__global__`."""
    text = _NOISE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for start in re.finditer(r"\b__global__\b", text):
        at = start.end()
        while (token := _TOKEN.search(text, at)) is not None and token[0] not in ";{}(":
            at = token.end()
            behind = _TOKEN.search(text, at)
            if behind is None or behind[0] != "(":
                continue
            end = _closing(text, behind.start())
            if token[0] in _ATTRIBUTES:
                at = end
                continue
            yield token[0], _split(text[behind.end() : end - 1])
            break


def _closing(text: str, start: int) -> int:
    """The offset behind the parenthesis that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            return at + 1
    return len(text)


def _name(parameter: str) -> str:
    """The name in a parameter's text, "" when it has none."""
    words = _TOKEN.findall(re.split(r"[=\[]", parameter, maxsplit=1)[0])
    last = words[-1] if words else ""
    has_name = (
        len(words) > 1 and last.isidentifier() and last not in _TYPE_WORDS and words[-2] != "::"
    )
    return last if has_name else ""


def _written_type(parameter: str, name: str) -> str:
    """The type in a parameter's text, written as in a demangled name."""
    words = _TOKEN.findall(_RESTRICT.sub("", parameter.partition("=")[0]))
    if name:
        words.remove(name)
    stars = [word for word in words if word == "*"]
    plain = [word for word in words if word not in ("*", "const")]
    const = ["const"] if "const" in words else []
    return " ".join([*const, *plain, *stars])


def _likeness(parts: Sequence[str], types: Sequence[str]) -> int:
    """In how many words a definition's parameters agree with the demangled types."""
    pairs = zip(parts, types, strict=True)
    return sum(len({*_TOKEN.findall(part)} & {*_TOKEN.findall(kind)}) for part, kind in pairs)


def _uses_dynamic_shared(module: Module, body: str) -> bool:
    names = [v.name for v in module.variables if v.space == "shared" and v.linkage == "extern"]
    return any(re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", body) for name in names)
