"""A device by its name on the command line."""

from __future__ import annotations

from gpuwatch.device.base import Device
from gpuwatch.device.cuda import open_cuda
from gpuwatch.device.sim import open_sim
from gpuwatch.device.sim.profiles import load, names
from gpuwatch.errors import UserError

DEFAULT_PROFILE = "a10"
FORMS = f"auto, sim, sim:PROFILE ({', '.join(names())}), sim:FILE.toml, cuda, cuda:0"


def open_device(spec: str, timeout: float = 10.0) -> tuple[Device, str]:
    """Opens the device that `spec` names; the text says why "auto" took the simulator, or "".

    A launch longer than `timeout` seconds counts as hung. Raises UserError for an unknown form
    and for a GPU that cannot be used.
    """
    kind, which = _parsed(spec)
    if kind == "auto":
        return _best(timeout)
    if kind == "sim":
        return open_sim(which, timeout=timeout), ""
    return open_cuda(int(which), timeout=timeout), ""


def check_device(spec: str) -> None:
    """Raises UserError for what names no device, without opening one: whether a GPU can be used
    is told by opening it."""
    kind, which = _parsed(spec)
    if kind == "sim":
        load(which)


def _parsed(spec: str) -> tuple[str, str]:
    """The kind of device, and which: a profile or a GPU's number. Raises UserError."""
    kind, _, which = spec.partition(":")
    match kind:
        case "auto" if not which:
            return kind, ""
        case "sim":
            return kind, which or DEFAULT_PROFILE
        case "cuda" if which.isdecimal() or not which:
            return kind, which or "0"
    raise UserError(f"there is no device {spec!r}", hint=f"the forms are: {FORMS}")


def _best(timeout: float) -> tuple[Device, str]:
    try:
        return open_cuda(0, timeout=timeout), ""
    except UserError as problem:
        why = f"simulated GPU, because {problem.message}"
        return open_sim(DEFAULT_PROFILE, timeout=timeout), why
