"""Weaving for the launches of a running program, beside listening to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from gpuwatch.engine.attached import AttachedBuild, Wanted, build_attached
from gpuwatch.engine.background import guarded
from gpuwatch.engine.program_attachment import Attachment
from gpuwatch.engine.program_process import KernelSeen, Process
from gpuwatch.errors import UserError
from gpuwatch.inject.protocol import BuildOrder, Shape
from gpuwatch.probe import load
from gpuwatch.ptx.model import Module
from gpuwatch.ptx.parameters import block_bytes
from gpuwatch.ptx.placed import global_variables
from gpuwatch.toolchain import Toolchain

_SLOTS = 8
"""Launches whose records may be under way at a time."""
_SLOT_SHARE = 256 << 20
"""Bytes of maps that they may take together; fewer slots then, at least one."""
_BRIEF_SECONDS = 0.01
"""A kernel this short is unlikely to run for 2^32 cycles when it is probed."""

Say = Callable[[str, str], None]


class Weaver:
    """Weaves in a thread of its own, sends what was made to the program, and tells `say` (who,
    what) why it could not be. Cubins and contents for the library lie in the process's folder."""

    def __init__(self, toolchain: Toolchain, map_limit: int, say: Say) -> None:
        self._toolchain, self._map_limit, self._say = toolchain, map_limit, say
        self._thread = ThreadPoolExecutor(1, "gpuwatch-weaver")
        self._jobs: list[Future[None]] = []

    def weave(self, attachment: Attachment, number: int, device: int, shape: Shape) -> None:
        """What the library wants under this number: launches in this shape on a GPU of the
        process."""
        self._jobs.append(self._thread.submit(self._job, attachment, number, device, shape))

    def check(self) -> None:
        """Raises what a job has raised: it tells of all that can go wrong itself."""
        done = [one for one in self._jobs if one.done()]
        self._jobs = [one for one in self._jobs if not one.done()]
        for one in done:
            one.result()

    def close(self) -> None:
        """Waits for nothing."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _job(self, attachment: Attachment, number: int, device: int, shape: Shape) -> None:
        making = partial(self._ordered, attachment, number, device, shape)
        order, problem = guarded(making, "weaver")
        if order is not None:
            attachment.send(order.line())
        else:
            if not attachment.builds:  # else launches in other shapes are probed
                attachment.problem = problem
            attachment.send(f"none {number}")
        if problem is not None:
            self._say("error", problem.render())

    def _ordered(
        self, attachment: Attachment, number: int, device: int, shape: Shape
    ) -> BuildOrder:
        known = attachment.shapes.get((device, shape))
        if known is None:
            wanted = attachment.shapes[device, shape] = _wanted(attachment, number, device, shape)
        else:  # its variables lie elsewhere once the device was reset
            wanted = replace(known, addresses=_addresses(attachment, number, known.module))
        made = build_attached(wanted, self._toolchain, self._map_limit)
        order = self._order(number, attachment, made)
        attachment.builds[number] = made
        return order

    def _order(self, number: int, attachment: Attachment, made: AttachedBuild) -> BuildOrder:
        wanted, woven = made.wanted, made.woven
        folder = attachment.process.link.folder
        cubin = folder / f"build-{number}.cubin"
        cubin.write_bytes(made.assembled.cubin)
        entry = next(one for one in wanted.module.entries() if one.name == wanted.entry)
        return BuildOrder(
            number=number,
            cubin=cubin,
            entry=woven.entry,
            takes_pointers=woven.takes_pointers,
            variable=woven.pointer_variable,
            parameters=len(entry.parameters),
            parameter_bytes=block_bytes(entry.parameters),
            slots=self._slots(attachment, made),
            buffers=made.layout.buffers,
            constants=made.constants,
            fixed=tuple(_fixed(folder, number, made)),
        )

    def _slots(self, attachment: Attachment, made: AttachedBuild) -> int:
        """For how many launches there is memory on the GPU: all shapes share the limit. Raises
        UserError where there is none for one."""
        device, size = made.wanted.device.ordinal, max(1, sum(made.layout.buffers))
        held = attachment.held_on(device)
        room = self._map_limit - held
        if size > room:
            raise UserError(
                f"no memory is left for maps of {attachment.kernel.name} in one more shape, "
                f"{made.wanted.shape.words()}: {held:,} bytes are those of others",
                hint="launches in this shape run without the probe; raise --map-limit",
            )
        slots = min(_SLOTS, max(1, min(_SLOT_SHARE, room) // size))
        slots = slots if made.woven.takes_pointers else 1
        attachment.hold(made, slots * size)
        return slots


def _fixed(folder: Path, number: int, made: AttachedBuild) -> list[tuple[int, Path]]:
    found = []
    for index, content in made.layout.fixed.items():
        file = folder / f"build-{number}.fixed{index}"
        file.write_bytes(content.tobytes())
        found.append((index, file))
    return found


def _wanted(attachment: Attachment, number: int, device: int, shape: Shape) -> Wanted:
    process, kernel = attachment.process, attachment.kernel
    info = process.info(device)
    module, target = process.module(kernel, info.arch)
    seconds = _longest(process, kernel)
    return Wanted(
        module=module,
        target=target,
        entry=kernel.mangled,
        shape=shape,
        info=info,
        device=process.devices[device],
        program=load(attachment.probe),
        addresses=_addresses(attachment, number, module),
        brief=0 < seconds < _BRIEF_SECONDS,
    )


def _addresses(attachment: Attachment, number: int, module: Module) -> Mapping[str, int]:
    """Raises UserError where the probed kernel would write to a variable of its own instead; what
    has an initial value and is not to be found is taken for a text that kernels print."""
    process, kernel = attachment.process, attachment.kernel
    names = global_variables(module, kernel.mangled)
    found = process.locate(number, names)
    texts = {one.name for one in module.variables if one.initial}
    missing = [name for name in names if name not in found and name not in texts]
    if missing:
        raise UserError(
            f"the driver does not tell where the variable {missing[0]} of {kernel.name} lies",
            hint="the program's own kernel runs; watch another kernel of the program",
            status=1,
        )
    return found


def _longest(process: Process, kernel: KernelSeen) -> float:
    """Seconds of its longest plain launch so far, 0 before the first."""
    rows = process.rows()
    mine = () if rows is None else rows[rows["kernel"] == kernel.number]
    return max((int(row["max_ns"]) / 1e9 for row in mine), default=0.0)
