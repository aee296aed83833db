"""A first guess of a launch from the signature, and what was used last time."""

from __future__ import annotations

import json
import re

from gpuwatch import cache
from gpuwatch.launch.given import LaunchForm
from gpuwatch.launch.signature import KernelParameter, KernelSignature

ELEMENTS = 1 << 20
"""Elements of a guessed buffer, and of a guessed one-dimensional problem."""
SIDE = 1 << 10
"""A guessed size where there are several, so that two of them make `ELEMENTS`."""
DYNAMIC_SHARED = 16 << 10
"""Guessed bytes of dynamic shared memory where the kernel uses any."""

_KIND = "launch-form"
_OUTPUT = re.compile(r"(?:^|_)(?:out|output|dst|dest|res|result|c|y|z)\d*(?:_|$)", re.I)
_SIZE = re.compile(
    r"(?:n|m|k|len|length|size|count|num\w*|total|width|height|rows?|cols?|columns|nx|ny|nz|w|h"
    r"|n_?elements|elements)$",
    re.I,
)
_STRIDE = re.compile(r"(?:ld[a-z]?|stride\w*|pitch\w*|lda|ldb|ldc)$", re.I)
_ACROSS = re.compile(r"(?:n|width|w|cols?|columns|nx)$", re.I)
_DOWN = re.compile(r"(?:m|height|h|rows?|ny)$", re.I)
_BLOCKS = {1: (256, 1, 1), 2: (32, 8, 1), 3: (8, 8, 8)}


def guess_form(signature: KernelSignature) -> LaunchForm:
    """A launch that is likely to make sense, to be looked over by the user.

    Pointers get 1,048,576 elements, uniform where the kernel reads them and zeros where it
    writes; sizes by their names 1024, or 1,048,576 where there is only one; the block is 256
    threads and the grid covers the sizes.
    """
    sizes = [p for p in signature.parameters if _is_size(p)]
    arguments = tuple((p.label, _argument(p, signature, len(sizes))) for p in signature.parameters)
    block = signature.block or _BLOCKS[signature.axes]
    cluster = signature.cluster or (1, 1, 1)
    grid = [
        _cover(axis, block[axis], cluster[axis], signature, sizes) for axis in range(signature.axes)
    ]
    return LaunchForm(
        grid=", ".join(grid),
        block=", ".join(str(size) for size in block[: signature.axes]),
        shared=str(DYNAMIC_SHARED if signature.dynamic_shared else 0),
        arguments=arguments,
    )


def form_key(source: str, kernel: str) -> str:
    """The key under which a kernel's last launch is remembered: its file's path and its name."""
    return cache.key_of([_KIND, source, kernel])


def remember(key: str, form: LaunchForm) -> None:
    """Keeps the texts of `form` for `remembered`."""
    cache.store(_KIND, key, json.dumps(form.values()).encode())


def remembered(key: str, signature: KernelSignature) -> LaunchForm | None:
    """What was used last, None when nothing was or the kernel's parameters have changed."""
    stored = cache.load(_KIND, key)
    if stored is None:
        return None
    content = json.loads(stored)
    named = dict(content.pop("arguments"))
    arguments = tuple((str(label), str(value)) for label, value in named.items())
    if [label for label, _ in arguments] != [p.label for p in signature.parameters]:
        return None
    return LaunchForm(arguments=arguments, **content)


def _is_size(parameter: KernelParameter) -> bool:
    element = parameter.element
    whole = element is not None and element.kind != "f" and not parameter.is_pointer
    return whole and _SIZE.match(parameter.name) is not None


def _argument(parameter: KernelParameter, signature: KernelSignature, sizes: int) -> str:
    element = parameter.element
    if parameter.is_pointer:
        name = element.name if element else "f32"
        return f"{name}[{ELEMENTS}]:{'zeros' if _is_output(parameter, signature) else 'uniform'}"
    if element is None:
        return f"bytes:{'00' * parameter.slot.size}"
    if element.kind == "f":
        return "1.0"
    if _is_size(parameter):
        return str(ELEMENTS if sizes == 1 else SIDE)
    return str(SIDE) if _STRIDE.match(parameter.name) else "1"


def _is_output(parameter: KernelParameter, signature: KernelSignature) -> bool:
    """Not const, and named like a result or beside pointers that are const."""
    if parameter.is_const:
        return False
    others_const = any(p.is_const for p in signature.parameters)
    return others_const or _OUTPUT.search(parameter.name) is not None


def _cover(
    axis: int,
    threads: int,
    cluster: int,
    signature: KernelSignature,
    sizes: list[KernelParameter],
) -> str:
    """Blocks of one axis so that the threads cover the size that it most likely runs over."""
    if axis == 2:
        return str(cluster)
    if signature.axes == 1:
        size = sizes[0].name if len(sizes) == 1 else str(ELEMENTS)
    else:
        wanted = (_ACROSS, _DOWN)[axis]
        size = next((p.name for p in sizes if wanted.match(p.name)), str(SIDE))
    if cluster > 1:
        return f"{cluster}*cdiv({size}, {cluster * threads})"
    return f"cdiv({size}, {threads})"
