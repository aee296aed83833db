"""A launch as the user describes it, in flags, a form or a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from gpuwatch.errors import Location, UserError
from gpuwatch.launch.expressions import Number, evaluate, outer_parts, whole
from gpuwatch.launch.model import Dim3, Launch, Relocation
from gpuwatch.launch.signature import KernelParameter, KernelSignature
from gpuwatch.launch.values import Memory, Text, Value, read_pointer, read_scalar, read_struct

MOST_THREADS = 1024
"""Threads of a block on every device so far (CUDA programming guide, compute capabilities)."""
MOST_BLOCKS = (2**31 - 1, 65_535, 65_535)
MOST_IN_BLOCK = (1024, 1024, 64)
"""Largest extents of a grid and of a block, compute capability 5.0 to 12.x.

Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
"""

_AXES = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class LaunchForm:
    """A launch as editable texts.

    `grid`, `block` and `cluster` are one to three expressions with commas between them, `shared`
    is one, in bytes. Expressions may name scalar arguments and `sizes`. `arguments` are (name or
    position of the parameter, value as `gpuwatch.launch.values` says). `places` says where the
    texts stand that come from a file, by "grid", "block", "shared", "cluster" and label.
    """

    grid: str
    block: str
    shared: str = "0"
    arguments: tuple[tuple[str, str], ...] = ()
    cluster: str = ""
    cooperative: bool = False
    sizes: Mapping[str, Number] = field(default_factory=dict)
    places: Mapping[str, Location] = field(default_factory=dict)
    folder: str = "."
    """What a relative file=PATH starts from."""

    def values(self) -> dict[str, Any]:
        """All of it but `places`, as JSON takes it; the folder from the root."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "places"} | {
            "arguments": dict(self.arguments),
            "sizes": dict(self.sizes),
            "folder": str(Path(self.folder).resolve()),
        }

    def text(self, key: str, content: str, option: str = "") -> Text:
        """`content` with its place: in the file that it came from, else as an option's value."""
        head = option or f"--{key} "
        shown = f"{head}{content}"
        return Text(content, self.places.get(key) or Location("launch", 1, len(head) + 1, shown))


def form_from_flags(grid: str, block: str, shared: str, arguments: Sequence[str]) -> LaunchForm:
    """`--grid`, `--block`, `--shared` and every `--arg NAME=VALUE` as a form; raises UserError
    for an argument without `=`."""
    pairs = []
    for argument in arguments:
        label, found, value = argument.partition("=")
        if not found:
            raise UserError(
                f"--arg {argument!r} has no =",
                hint="write NAME=VALUE, like --arg M=1024 or --arg A=f32[1024]:uniform",
            )
        pairs.append((label.strip(), value))
    return LaunchForm(grid, block, shared, tuple(pairs))


def launch_from_form(signature: KernelSignature, form: LaunchForm) -> Launch:
    """The launch that a form describes.

    Raises UserError where a value has another form or size than its parameter, and where a
    parameter is missing, unknown or given twice.
    """
    given = _assigned(signature, form)
    memory = Memory(_sizes(given, form.sizes), Path(form.folder))
    block = bytearray(_bytes_of(signature))
    relocations = []
    for parameter, text in given:
        slot = parameter.slot
        value = _read(parameter, text, memory)
        block[slot.offset : slot.offset + slot.size] = value.content
        relocations += [
            Relocation(slot.offset + at, buffer, addend) for at, buffer, addend in value.pointers
        ]
    return Launch(
        kernel=signature.kernel,
        grid=_grid(form, memory.names),
        block=_block(signature, form, memory.names),
        shared_bytes=_shared(form, memory.names),
        slots=tuple(parameter.slot for parameter in signature.parameters),
        parameters=bytes(block),
        relocations=tuple(relocations),
        buffers=memory.buffers,
        cooperative=form.cooperative,
        cluster=read_shape(form.text("cluster", form.cluster), memory.names)
        if form.cluster
        else signature.cluster,
    )


def read_shape(text: Text, names: Mapping[str, Number]) -> Dim3:
    """One to three whole numbers of at least 1 with commas or, between digits, x between them."""
    parts = list(_parts(text))
    if not 1 <= len(parts) <= len(_AXES):
        raise text.error(f"{text.text!r} is no shape", "write one to three numbers, like 32,43")
    shape = [1, 1, 1]
    for axis, part in enumerate(parts):
        shape[axis] = whole(part.text, names, part.at)
        if shape[axis] < 1:
            raise part.error(f"{_AXES[axis]} is {shape[axis]}", "give 1 or more")
    return shape[0], shape[1], shape[2]


def _grid(form: LaunchForm, names: Mapping[str, Number]) -> Dim3:
    text = form.text("grid", form.grid)
    grid = read_shape(text, names)
    _require_within(text, grid, MOST_BLOCKS, "grid")
    return grid


def _require_within(text: Text, shape: Dim3, most: Dim3, what: str) -> None:
    for axis, size, limit in zip(_AXES, shape, most, strict=True):
        if size > limit:
            raise text.error(
                f"{axis} of the {what} is {size:,}",
                f"give at most {limit} in {axis}; the limits are {','.join(map(str, most))}",
            )


def _block(signature: KernelSignature, form: LaunchForm, names: Mapping[str, Number]) -> Dim3:
    text = form.text("block", form.block)
    block = read_shape(text, names)
    threads = math.prod(block)
    if threads > MOST_THREADS:
        raise text.error(f"a block of {threads:,} threads", f"give at most {MOST_THREADS}")
    _require_within(text, block, MOST_IN_BLOCK, "block")
    if signature.block not in (None, block):
        wanted = "x".join(map(str, signature.block or ()))
        raise text.error(f"the kernel was compiled for blocks of {wanted}", "give that block")
    return block


def _parts(text: Text) -> Iterator[Text]:
    """The parts between commas outside parentheses."""
    content = text.text
    if content.replace("x", "").isdigit():
        content = content.replace("x", ",")
    for at, part in outer_parts(content):
        yield text.part(at, at + len(part))


def _shared(form: LaunchForm, names: Mapping[str, Number]) -> int:
    text = form.text("shared", form.shared)
    shared = whole(text.text, names, text.at)
    if shared < 0:
        raise text.error(f"{shared} bytes of shared memory", "give 0 or more")
    return shared


def _assigned(signature: KernelSignature, form: LaunchForm) -> list[tuple[KernelParameter, Text]]:
    """Each parameter with its text, in order."""
    given: dict[int, Text] = {}
    for label, value in form.arguments:
        parameter = signature.find(label)
        text = form.text(label, value, f"--arg {label}=")
        if parameter.position in given:
            raise text.error(f"{parameter.label} is given twice", "give each parameter once")
        given[parameter.position] = text
    missing = [p for p in signature.parameters if p.position not in given]
    if missing:
        base = signature.demangled.partition("(")[0]
        raise UserError(
            f"{base} lacks {', '.join(p.label for p in missing)}",
            detail=f"its parameters:\n{signature.listing()}",
            hint="add " + " ".join(f"--arg {p.label}={_example(p)}" for p in missing),
        )
    return [(p, given[p.position]) for p in signature.parameters]


def _example(parameter: KernelParameter) -> str:
    element = parameter.element
    if parameter.is_pointer:
        return f"{element.name if element else 'f32'}[1024]:uniform"
    return "1024" if element else f"bytes:{'00' * parameter.slot.size}"


def _sizes(
    given: Sequence[tuple[KernelParameter, Text]], sizes: Mapping[str, Number]
) -> dict[str, Number]:
    """`sizes` and the scalar arguments by name, as far as they can be worked out.

    An argument may name others whatever their order; one that cannot be worked out here is
    reported where it is read.
    """
    names = dict(sizes)
    waiting = {
        p.name: text for p, text in given if p.name and not p.is_pointer and p.element is not None
    }
    waiting = {name: text for name, text in waiting.items() if name not in names}
    progress = True
    while progress:
        progress = False
        for name, text in list(waiting.items()):
            try:
                names[name] = evaluate(text.text, names)
            except UserError:
                continue
            del waiting[name]
            progress = True
    return names


def _read(parameter: KernelParameter, text: Text, memory: Memory) -> Value:
    content = text.text.strip()
    slot = parameter.slot
    if content.startswith(("{", "bytes:")):
        return read_struct(text, slot.size, parameter.label, memory)
    is_buffer = slot.size == 8 and ("[" in content or content.startswith("@") or content == "null")
    if parameter.is_pointer or is_buffer:
        return read_pointer(text, parameter.label, memory)
    return read_scalar(text, parameter.element, slot.size, memory)


def _bytes_of(signature: KernelSignature) -> int:
    ends = [p.slot.offset + p.slot.size for p in signature.parameters]
    return max(ends, default=0)
