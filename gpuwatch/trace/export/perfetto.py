"""Timelines as Perfetto's own traces (protobuf)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpuwatch.errors import UserError
from gpuwatch.trace.export.chrome import sm_name
from gpuwatch.trace.export.spans import Spans, spans_of
from gpuwatch.trace.facts import KernelFacts
from gpuwatch.trace.reading import LaunchRecords

_SEQUENCE = 1


def write_perfetto(path: Path, facts: KernelFacts, launches: Iterable[LaunchRecords]) -> int:
    """A track for each SM, below it one for each slot of blocks and of warps, on these a slice
    for each block and warp; gives the number of slices. Raises UserError without perfetto."""
    builder_type, protos = _library()
    count = 0
    with path.open("wb") as file:
        tracks = _Tracks(builder_type(file), protos, facts)
        for spans in spans_of(launches):
            tracks.write(spans)
            count += len(spans.number)
    return count


def _library() -> tuple[Any, Any]:
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
        from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder
    except ImportError as problem:
        raise UserError(
            "Perfetto traces need the package perfetto, which is not installed",
            hint="pip install 'gpuwatch-live[export]', or export to chrome, which needs nothing",
        ) from problem
    return StreamingTraceProtoBuilder, perfetto_trace_pb2


class _Tracks:
    """Describes each track when it is first needed."""

    def __init__(self, builder: Any, protos: Any, facts: KernelFacts) -> None:
        self._builder = builder
        self._event = protos.TrackEvent
        self._ids: dict[tuple[object, ...], int] = {}
        self._root = self._track((), f"{facts.name} on {facts.device.name}")

    def write(self, spans: Spans) -> None:
        sm = self._track(("sm", spans.sm), sm_name(spans.sm), self._root)
        rows = zip(
            spans.number.tolist(), spans.lane.tolist(), spans.begin.tolist(), spans.end.tolist(),
            spans.elapsed.tolist(), strict=True,
        )  # fmt: skip
        for number, lane, begin, end, cycles in rows:
            name = f"{spans.kind} slot {lane}"
            track = self._track((spans.sm, spans.kind, lane), name, sm)
            self._slice(track, spans, f"{spans.kind} {number}", begin, end, cycles)

    def _slice(
        self, track: int, spans: Spans, name: str, begin: int, end: int, cycles: int
    ) -> None:
        packet = self._packet(begin)
        event = packet.track_event
        event.type = self._event.TYPE_SLICE_BEGIN
        event.track_uuid = track
        event.name = name
        event.categories.append(spans.kind)
        for key, value in (("launch", spans.launch), ("cycles", cycles)):
            note = event.debug_annotations.add()
            note.name, note.int_value = key, value
        self._builder.write_packet(packet)
        packet = self._packet(end)
        packet.track_event.type = self._event.TYPE_SLICE_END
        packet.track_event.track_uuid = track
        self._builder.write_packet(packet)

    def _packet(self, nanoseconds: int) -> Any:
        packet = self._builder.create_packet()
        packet.timestamp = nanoseconds
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet

    def _track(self, key: tuple[object, ...], name: str, parent: int = 0) -> int:
        if key not in self._ids:
            self._ids[key] = len(self._ids) + 1
            packet = self._builder.create_packet()
            packet.track_descriptor.uuid = self._ids[key]
            packet.track_descriptor.name = name
            if parent:
                packet.track_descriptor.parent_uuid = parent
            self._builder.write_packet(packet)
        return self._ids[key]
