"""Opening a device by its written form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpuwatch.device.base import Device
from gpuwatch.errors import UserError

DEFAULT_PROFILE = "a10"
FORMS = "auto, cuda, cuda:INDEX, sim, sim:PROFILE"


@dataclass(frozen=True, slots=True)
class Opened:
    """A device, and one line on why it is this one ("" when it was asked for by name)."""

    device: Device
    note: str = ""


def open_device(spec: str = "auto", *, timeout: float | None = None) -> Device:
    """The device that `spec` names: "auto", "cuda", "cuda:0", "sim", "sim:a10".

    "auto" is the first CUDA device, or the simulator when there is none. `timeout` is how many
    seconds one launch on a CUDA device may take, None for the device's own limit.
    Raises UserError for an unknown form, and whatever opening the device raises.
    """
    return open_with_note(spec, timeout=timeout).device


def open_with_note(spec: str = "auto", *, timeout: float | None = None) -> Opened:
    """As `open_device`, with the reason of an automatic choice."""
    if spec == "auto":
        return _open_auto(timeout)
    kind, separator, detail = spec.partition(":")
    opener = _OPENERS.get(kind)
    if opener is None or (separator and not detail):
        raise UserError(f"unknown device {spec!r}", hint=f"the forms are {FORMS}")
    return Opened(opener(detail, timeout))


def _open_auto(timeout: float | None) -> Opened:
    try:
        return Opened(_open_cuda("", timeout))
    except UserError as error:
        reason = error.message
    note = f"simulated {DEFAULT_PROFILE}, because CUDA is not available: {reason}"
    return Opened(_open_sim("", timeout), note)


def _open_cuda(detail: str, timeout: float | None) -> Device:
    if detail and not detail.isdigit():
        raise UserError(f"unknown CUDA device {detail!r}", hint="give its index, as in cuda:0")
    from gpuwatch.device.cuda import open_cuda

    limits = {} if timeout is None else {"timeout": timeout}
    return open_cuda(int(detail or 0), **limits)


def _open_sim(detail: str, _timeout: float | None) -> Device:
    from gpuwatch.device.sim import open_sim

    return open_sim(detail or DEFAULT_PROFILE)


_OPENERS: dict[str, Callable[[str, float | None], Device]] = {
    "cuda": _open_cuda,
    "sim": _open_sim,
}
