"""A launch as data: captured from the program's own main(), or given."""

from gpuwatch.launch.capture import capture
from gpuwatch.launch.model import Capture, DeviceAnswers, Launch, ParameterSlot, Relocation
from gpuwatch.launch.parameters import parameter_slots

__all__ = [
    "Capture",
    "DeviceAnswers",
    "Launch",
    "ParameterSlot",
    "Relocation",
    "capture",
    "parameter_slots",
]
