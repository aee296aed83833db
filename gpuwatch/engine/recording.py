"""Launches of a session written to a trace folder."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from gpuwatch.device.base import LoadedKernel
from gpuwatch.engine.attach import PlainKernel, ProbedKernel
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.engine.readings import always_saved
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.probe import load
from gpuwatch.toolchain import assemble
from gpuwatch.trace import probe_text, reader_script
from gpuwatch.trace.facts import DeviceFacts, Figures, KernelFacts, LaunchFacts
from gpuwatch.trace.prune import prune
from gpuwatch.trace.writer import PRINTED_BYTES, Build, TraceWriter

Told = Callable[[int], None]
"""Hears how many launches are written."""


_given: Counter[str] = Counter()
"""How often this process has given each name of a folder."""


def default_folder() -> Path:
    """trace/Aug14_112435_2682: month, day, time and process; of further ones of the same second
    their number, too."""
    name = f"{time.strftime('%b%d_%H%M%S')}_{os.getpid()}"
    _given[name] += 1
    return Path("trace") / (name if _given[name] == 1 else f"{name}_{_given[name]}")


def record(session: Session, target: Path, launches: int, told: Told = lambda _count: None) -> Path:
    """Launches the session's selection so many times, one by one, and writes all of it.

    The session must be prepared. After an error or an interruption the folder holds the launches
    before it, or is not there at all. Raises UserError when a launch fails, or the folder exists
    or cannot be written.
    """
    writer = TraceWriter(target)
    try:
        _write_all(session, writer, launches, told)
    except BaseException:
        writer.abandon()
        raise
    return writer.finish()


def _write_all(session: Session, writer: TraceWriter, launches: int, told: Told) -> None:
    mangled, name = session.selected
    if not mangled:
        raise UserError("no kernel is selected yet", hint="choose one, then record")
    plain, probed = session.build.plains[mangled], session.build.probeds[mangled, name]
    if not session.has_frame:
        session.step()
    if probed.pipeline is not None:
        probed.pipeline.settle()
    facts = facts_of(session.frame(), plain, probed)
    program = probed.program
    writer.text(probe_text.NAME, probe_text.probe_text(program, probe_sources(name)))
    writer.text(reader_script.NAME, reader_script.reader_script(program.name, facts.maps))
    folder = writer.kernel(0, facts, _builds(session.program, plain, probed))
    for number in range(launches):
        launch = _launch(probed.runner.loaded, folder, number, modelled=facts.device.modelled)
        writer.launch(facts, probed.layout, probed.runner.loaded.read_map, launch)
        told(number + 1)


def _launch(loaded: LoadedKernel, folder: str, number: int, *, modelled: bool) -> LaunchFacts:
    result = loaded.run()
    return LaunchFacts(
        kernel=folder,
        number=number,
        kernel_seconds=result.kernel_seconds,
        thread_instructions=result.thread_instructions,
        printed=result.output[-PRINTED_BYTES:],
        modelled=modelled,
    )


def facts_of(frame: Frame, plain: PlainKernel, probed: ProbedKernel) -> KernelFacts:
    """What a trace says of an attached kernel; `frame` is any of it."""
    return KernelFacts(
        name=frame.kernel,
        mangled=frame.mangled,
        grid=frame.grid,
        block=frame.block,
        dynamic_shared_bytes=plain.launch.shared_bytes,
        probe=probed.program.name,
        title=probed.program.title,
        maps=tuple(place.map for place in probed.layout.places),
        always=always_saved(probed.program),
        sites=probed.woven.sites,
        device=DeviceFacts(**asdict(frame.device)),
        figures=Figures(
            registers_plain=frame.registers_plain,
            registers_probed=frame.registers_probed,
            spills_plain=frame.spills_plain,
            spills_probed=frame.spills_probed,
            resident_plain=frame.resident_plain,
            resident_probed=frame.resident_blocks,
            shared_bytes=frame.shared_bytes,
            seconds_plain=frame.seconds_plain,
            seconds_probed=frame.seconds_probed,
            outputs_identical=frame.outputs_identical,
        ),
        notes=frame.notes,
    )


def _builds(watched: WatchedProgram, plain: PlainKernel, probed: ProbedKernel) -> dict[str, Build]:
    mangled = plain.launch.kernel
    cut = prune(watched.module, mangled)
    pruned = assemble(watched.toolchain, cut, watched.arch, mangled)
    original = plain.runner.assembled
    woven = probed.runner.assembled
    return {
        "original": Build(watched.module.text, original.cubin, original.log),
        "pruned": Build(cut, pruned.cubin, pruned.log),
        "probed": Build(probed.woven.text, woven.cubin, woven.log),
    }


def probe_sources(names: str) -> list[tuple[str, str]]:
    """Name and text of the files that a probe, or several joined by commas, was read from."""
    several = "," in names and not Path(names).exists()
    parts = [part.strip() for part in names.split(",")] if several else [names]
    files = [Path(load(part).source) for part in parts if part]
    return [(file.name, file.read_text(encoding="utf-8-sig")) for file in files]
