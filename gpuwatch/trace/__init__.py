"""Traces: raw map bytes to structured arrays."""

from gpuwatch.trace.decode import Decoded, bucket_edges, decode, record_dtype

__all__ = ["Decoded", "bucket_edges", "decode", "record_dtype"]
