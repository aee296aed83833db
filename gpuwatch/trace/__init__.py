"""Traces: raw map bytes to structured arrays."""

from gpuwatch.trace.decode import Decoded, decode, record_dtype

__all__ = ["Decoded", "decode", "record_dtype"]
