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
    kind, _, which = spec.partition(":")
    if kind == "auto" and not which:
        return _best(timeout)
    if kind == "sim":
        return open_sim(which or DEFAULT_PROFILE, timeout=timeout), ""
    if kind == "cuda" and (which.isdigit() or not which):
        return open_cuda(int(which or 0), timeout=timeout), ""
    raise _unknown(spec)


def check_device(spec: str) -> None:
    """Raises UserError for what names no device, without opening one: whether a GPU can be used
    is told by opening it."""
    kind, _, which = spec.partition(":")
    if kind == "sim":
        load(which or DEFAULT_PROFILE)
    elif not (kind == "cuda" and (which.isdigit() or not which)) and spec not in ("auto", "auto:"):
        raise _unknown(spec)


def _unknown(spec: str) -> UserError:
    return UserError(f"there is no device {spec!r}", hint=f"the forms are: {FORMS}")


def _best(timeout: float) -> tuple[Device, str]:
    try:
        return open_cuda(0, timeout=timeout), ""
    except UserError as problem:
        why = f"simulated GPU, because {problem.message}"
        return open_sim(DEFAULT_PROFILE, timeout=timeout), why
