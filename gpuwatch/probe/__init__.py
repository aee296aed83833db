"""Probes: what to record, where, into which map."""

from gpuwatch.probe.catalogue import load
from gpuwatch.probe.compose import compose
from gpuwatch.probe.python_form import parse_python
from gpuwatch.probe.toml_form import parse_toml
from gpuwatch.probe.verify import verify

__all__ = ["compose", "load", "parse_python", "parse_toml", "verify"]
