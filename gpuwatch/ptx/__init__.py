"""PTX text to a lossless model and back; instruction tables; basic blocks and liveness."""

from gpuwatch.ptx.parser import parse, parse_fragment, unparse

__all__ = ["parse", "parse_fragment", "unparse"]
