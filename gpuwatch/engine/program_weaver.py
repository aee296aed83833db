"""Weaving for the launches of a running program, beside listening to it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

from gpuwatch.engine.attached import AttachedBuild, Wanted, build_attached
from gpuwatch.engine.background import guarded
from gpuwatch.engine.program_attachment import Attachment
from gpuwatch.engine.program_process import KernelSeen, Process
from gpuwatch.inject.protocol import BuildOrder, Shape
from gpuwatch.probe import load
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
    what) why it could not be. Cubins and contents for the library lie in `folder`."""

    def __init__(self, toolchain: Toolchain, map_limit: int, folder: Path, say: Say) -> None:
        self._toolchain, self._map_limit = toolchain, map_limit
        self._folder, self._say = folder, say
        self._numbers = count(1)
        self._thread = ThreadPoolExecutor(1, "gpuwatch-weaver")
        self._jobs: list[Future[None]] = []

    def weave(self, attachment: Attachment, device: int, shape: Shape) -> None:
        """For launches in this shape on a GPU of the process."""
        self._jobs.append(self._thread.submit(self._job, attachment, device, shape))

    def check(self) -> None:
        """Raises what a job has raised: it tells of all that can go wrong itself."""
        done = [one for one in self._jobs if one.done()]
        self._jobs = [one for one in self._jobs if not one.done()]
        for one in done:
            one.result()

    def close(self) -> None:
        """Waits for nothing."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _job(self, attachment: Attachment, device: int, shape: Shape) -> None:
        process, kernel = attachment.process, attachment.kernel
        made, problem = guarded(partial(self._made, attachment, device, shape), "weaver")
        if made is None or problem is not None:
            attachment.problem = problem
            process.link.send(f"none {kernel.number} {device} {shape.words()}")
            if problem is not None:
                self._say("error", problem.render())
            return
        number = next(self._numbers)
        order = self._order(number, attachment, made)
        attachment.builds[number] = made
        process.link.send(order.line())

    def _made(self, attachment: Attachment, device: int, shape: Shape) -> AttachedBuild:
        known = attachment.shapes.get((device, shape))
        if known is None:
            known = _wanted(attachment, device, shape)
            attachment.shapes[device, shape] = known
        return build_attached(known, self._toolchain, self._map_limit)

    def _order(self, number: int, attachment: Attachment, made: AttachedBuild) -> BuildOrder:
        wanted, woven = made.wanted, made.woven
        cubin = self._folder / f"{number}.cubin"
        cubin.write_bytes(made.assembled.cubin)
        entry = next(one for one in wanted.module.entries() if one.name == wanted.entry)
        slots = min(_SLOTS, max(1, _SLOT_SHARE // max(1, sum(made.layout.buffers))))
        return BuildOrder(
            number=number,
            kernel=attachment.kernel.number,
            device=wanted.device.ordinal,
            shape=wanted.shape,
            cubin=cubin,
            entry=woven.entry,
            takes_pointers=woven.takes_pointers,
            variable=woven.pointer_variable,
            parameters=len(entry.parameters),
            parameter_bytes=block_bytes(entry.parameters),
            slots=slots if woven.takes_pointers else 1,
            buffers=made.layout.buffers,
            constants=made.constants,
            fixed=tuple(self._fixed(number, made)),
        )

    def _fixed(self, number: int, made: AttachedBuild) -> list[tuple[int, Path]]:
        found = []
        for index, content in made.layout.fixed.items():
            file = self._folder / f"{number}.fixed{index}"
            file.write_bytes(content.tobytes())
            found.append((index, file))
        return found


def _wanted(attachment: Attachment, device: int, shape: Shape) -> Wanted:
    process, kernel = attachment.process, attachment.kernel
    info = process.info(device)
    module, target = process.module(kernel, info.arch)
    names = global_variables(module, kernel.mangled)
    seconds = _longest(process, kernel)
    return Wanted(
        module=module,
        target=target,
        entry=kernel.mangled,
        shape=shape,
        info=info,
        device=process.devices[device],
        program=load(attachment.probe),
        addresses=process.locate(kernel.number, device, names),
        brief=0 < seconds < _BRIEF_SECONDS,
    )


def _longest(process: Process, kernel: KernelSeen) -> float:
    """Seconds of its longest plain launch so far, 0 before the first."""
    rows = process.rows()
    mine = () if rows is None else rows[rows["kernel"] == kernel.number]
    return max((int(row["max_ns"]) / 1e9 for row in mine), default=0.0)
