"""Traces for other tools."""

from gpuwatch.trace.export.files import FORMATS, Exported, export

__all__ = ["FORMATS", "Exported", "export"]
