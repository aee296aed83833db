"""Traces: raw map bytes to structured arrays, and recorded launches on disk."""

from gpuwatch.trace.decode import Decoded, bucket_edges, decode, record_dtype
from gpuwatch.trace.folder import Trace, is_trace
from gpuwatch.trace.reading import LaunchRecords, read_result, records_of

__all__ = [
    "Decoded",
    "LaunchRecords",
    "Trace",
    "bucket_edges",
    "decode",
    "is_trace",
    "read_result",
    "record_dtype",
    "records_of",
]
