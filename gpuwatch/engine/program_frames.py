"""What a screen or a report shows of a probe on a running program's kernel."""

from __future__ import annotations

import time

from gpuwatch.engine.attached import AttachedBuild
from gpuwatch.engine.frame import Attached, Frame, Listing
from gpuwatch.engine.inline_source import source_of
from gpuwatch.engine.listing import source_lines
from gpuwatch.engine.program_attachment import Attachment
from gpuwatch.engine.program_process import medians
from gpuwatch.engine.rates import LaunchRate


class FrameMaker:
    """Makes the frames of one attachment; `launches` are those whose records were read."""

    def __init__(self, attachment: Attachment) -> None:
        self.attachment = attachment
        self._serial = 0
        self._rate = LaunchRate()
        self._last = time.monotonic()

    def observed(self) -> None:
        """Counts a launch whose records were read."""
        now = time.monotonic()
        self._rate.add(now, 1, max(now - self._last, 1e-6))
        self._last = now

    def reset(self) -> None:
        """Forgets what was accumulated."""
        for build in tuple(self.attachment.builds.values()):
            build.observed = 0
            build.reader.reset()

    def build(self) -> AttachedBuild | None:
        """That of the shape that is launched most, of those whose records have come."""
        builds = tuple(self.attachment.builds.values())  # the weaver adds to them
        seen = [one for one in builds if one.observed]
        return max(seen, key=lambda one: one.observed, default=None)

    def frame(self) -> Frame | None:
        """Of the newest launch in that shape; None before the first."""
        build, attachment = self.build(), self.attachment
        if build is None:
            return None
        process, table = attachment.process, attachment.process.link.table
        assert table is not None  # its records came through it
        row = table.row(build.row)
        seen, reading = medians(row), build.reader.reading()
        shape, layout = build.wanted.shape, build.layout
        self._serial += 1
        return Frame(
            serial=self._serial,
            kernel=attachment.kernel.name,
            mangled=attachment.key,
            probe=attachment.probe,
            device=build.wanted.info,
            grid=shape.grid,
            block=shape.block,
            shared_bytes=int(row["static_shared"]) + shape.dynamic_shared,
            launches=build.observed,
            launches_per_second=self._rate.per_second,
            blocks=layout.blocks,
            warps=layout.warps,
            records=reading.records,
            missing=reading.missing,
            dropped=reading.dropped,
            outputs_identical=None,
            registers_plain=int(row["registers"]) or build.plain.registers,
            registers_probed=build.assembled.registers,
            seconds_plain=seen.plain,
            seconds_probed=seen.probed or build.seconds,
            wall_seconds_per_launch=self._rate.wall_seconds,
            resident_blocks=build.resident_probed,
            running_cycles_mean=reading.running_mean,
            idle_cycles_mean=reading.idle_mean,
            elapsed=reading.elapsed,
            warps_table=reading.warps,
            sms=reading.sms,
            spills_plain=build.plain.spill_store_bytes,
            spills_probed=build.assembled.spill_store_bytes,
            resident_plain=build.resident_plain,
            maps=reading.maps,
            notes=build.woven.notes,
            source=process.link.command,
            attached=self._attached(),
        )

    def _attached(self) -> Attached:
        attachment, probed = self.attachment, self.attachment.taken
        process = attachment.process
        seen = max(process.launches_of(attachment.kernel) - attachment.before, probed)
        return Attached(process.pid, seen, probed, seen - probed)

    def listing(self, build: AttachedBuild) -> Listing:
        """The texts behind its frames; the source where the PTX names it and it is still there."""
        path, text = source_of(build.woven.text)
        return Listing(
            build=0,
            kernel=self.attachment.key,
            probe=self.attachment.probe,
            source=text,
            ptx=build.woven.text,
            inserted=build.woven.inserted_lines,
            lines=source_lines(build.woven.text, path),
            sites=tuple((site.source_line, site.opcode) for site in build.woven.sites),
        )
