"""Launches of a running program written to a trace folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from gpuwatch.engine.attached import AttachedBuild
from gpuwatch.engine.program_attachment import Attachment, Records
from gpuwatch.engine.program_process import medians
from gpuwatch.engine.readings import always_saved
from gpuwatch.engine.recording import probe_sources
from gpuwatch.trace import probe_text, reader_script
from gpuwatch.trace.facts import DeviceFacts, Figures, KernelFacts, LaunchFacts
from gpuwatch.trace.writer import Build, TraceWriter


class ProgramRecorder:
    """Writes a trace: each kernel in each shape its folder, each launch its result file.

    Raises UserError when the folder exists or cannot be written.
    """

    def __init__(self, target: Path, launches: int = 0) -> None:
        """`launches`: how many to take, 0 for all."""
        self._writer = TraceWriter(target)
        self._launches = launches
        self._kernels: dict[int, tuple[KernelFacts, str]] = {}
        """By the build's identity: facts and folder."""
        self._probe = ""

    @property
    def launches(self) -> int:
        """Launches written so far."""
        return self._writer.launches

    def event(self, text: str) -> None:
        """A line of event.log."""
        self._writer.event(text)

    def take(self, records: Records) -> bool:
        """Writes a launch; whether that was the last one wanted."""
        attachment, build = records.attachment, records.build
        if self._probe and attachment.probe != self._probe:
            return False  # the reader of a trace is one probe's
        facts, folder = self._kernel(attachment, build)
        launch = LaunchFacts(
            kernel=folder,
            number=records.number,
            kernel_seconds=records.seconds,
        )
        self._writer.launch(facts, build.layout, records.slot.read_map, launch)
        return 0 < self._launches <= self._writer.launches

    def finish(self) -> Path:
        """Gives the folder its name; gives that."""
        return self._writer.finish()

    def abandon(self) -> Path | None:
        """Keeps the launches so far, if there are any; gives the folder."""
        return self._writer.abandon()

    def _kernel(self, attachment: Attachment, build: AttachedBuild) -> tuple[KernelFacts, str]:
        key = id(build)
        if key not in self._kernels:
            facts = facts_of(attachment, build)
            if not self._probe:
                self._probe = attachment.probe
                program, sources = build.wanted.program, probe_sources(attachment.probe)
                self._writer.text(probe_text.NAME, probe_text.probe_text(program, sources))
                script = reader_script.reader_script(program.name, facts.maps)
                self._writer.text(reader_script.NAME, script)
            folder = self._writer.kernel(len(self._kernels), facts, _builds(build))
            self._kernels[key] = facts, folder
        return self._kernels[key]


def facts_of(attachment: Attachment, build: AttachedBuild) -> KernelFacts:
    """What a trace says of a kernel in one shape."""
    table = attachment.process.link.table
    assert table is not None  # its records came through it
    row = table.row(build.row)
    seen, shape, wanted = medians(row), build.wanted.shape, build.wanted
    return KernelFacts(
        name=attachment.kernel.name,
        mangled=attachment.kernel.mangled,
        grid=shape.grid,
        block=shape.block,
        dynamic_shared_bytes=shape.dynamic_shared,
        probe=wanted.program.name,
        title=wanted.program.title,
        maps=tuple(place.map for place in build.layout.places),
        always=always_saved(wanted.program),
        sites=build.woven.sites,
        device=DeviceFacts(**asdict(wanted.info)),
        figures=Figures(
            registers_plain=int(row["registers"]) or build.plain.registers,
            registers_probed=build.assembled.registers,
            spills_plain=build.plain.spill_store_bytes,
            spills_probed=build.assembled.spill_store_bytes,
            resident_plain=build.resident_plain,
            resident_probed=build.resident_probed,
            shared_bytes=int(row["static_shared"]) + shape.dynamic_shared,
            seconds_plain=seen.plain,
            seconds_probed=seen.probed,
        ),
        notes=(
            f"launched by process {attachment.process.pid}: {attachment.process.link.command}",
            *build.woven.notes,
        ),
    )


def _builds(build: AttachedBuild) -> dict[str, Build]:
    """The library is given one kernel's PTX, so the original is the pruned one."""
    original = Build(build.wanted.module.text, build.plain.cubin, build.plain.log)
    probed = Build(build.woven.text, build.assembled.cubin, build.assembled.log)
    return {"original": original, "pruned": original, "probed": probed}
