"""PTX text to a lossless model and back; instruction tables; basic blocks and liveness."""

from gpuwatch.ptx.parser import check, parse, parse_fragment, unparse

__all__ = ["check", "parse", "parse_fragment", "unparse"]
