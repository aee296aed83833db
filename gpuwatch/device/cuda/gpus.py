"""The GPUs that the driver shows, and why one of them cannot be opened."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any

from gpuwatch.device.cuda.driver import error_name, open_library, start
from gpuwatch.errors import UserError

_SM_COUNT, _COMPUTE_MODE, _MAJOR, _MINOR = 16, 20, 75, 76
"""CUdevice_attribute."""
PROHIBITED, EXCLUSIVE = 2, 3
"""CUcomputemode."""
_MODES = {PROHIBITED: "compute mode Prohibited", EXCLUSIVE: "compute mode Exclusive_Process"}
_NAME_BYTES = 256


@dataclass(frozen=True, slots=True)
class Gpu:
    """`index` is N of "cuda:N"; `arch` is like "sm_90"; `mode` a CUcomputemode."""

    index: int
    name: str
    arch: str
    sm_count: int
    memory_bytes: int
    mode: int

    @property
    def is_instance(self) -> bool:
        """Whether it is a part of a GPU in MIG mode."""
        return " MIG " in self.name

    @property
    def described(self) -> str:
        """One line: name, architecture, size, and what is unusual about it."""
        gib = self.memory_bytes / (1 << 30)
        parts = [self.name, self.arch, f"{self.sm_count} SMs", f"{gib:.0f} GiB"]
        if self.is_instance:
            parts.append("a MIG instance")
        if self.mode in _MODES:
            parts.append(_MODES[self.mode])
        return ", ".join(parts)


def shown_gpus() -> list[Gpu]:
    """The GPUs that the driver shows. Raises UserError when there is no driver, or no GPU."""
    library = open_library()
    start(library)
    return listed(library)


def listed(library: Any) -> list[Gpu]:
    """The GPUs of a started driver. Raises UserError where it refuses to tell of one."""
    count = ctypes.c_int()
    _check(library, "cuDeviceGetCount", ctypes.byref(count))
    return [_gpu(library, index) for index in range(count.value)]


def _gpu(library: Any, index: int) -> Gpu:
    device, memory = ctypes.c_int(), ctypes.c_size_t()
    name = ctypes.create_string_buffer(_NAME_BYTES)
    _check(library, "cuDeviceGet", ctypes.byref(device), index)
    _check(library, "cuDeviceGetName", name, _NAME_BYTES, device)
    _check(library, "cuDeviceTotalMem_v2", ctypes.byref(memory), device)

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        _check(library, "cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    return Gpu(
        index=index,
        name=name.value.decode(errors="replace"),
        arch=f"sm_{attribute(_MAJOR)}{attribute(_MINOR)}",
        sm_count=attribute(_SM_COUNT),
        memory_bytes=memory.value,
        mode=attribute(_COMPUTE_MODE),
    )


def _check(library: Any, function: str, *arguments: Any) -> None:
    status = getattr(library, function)(*arguments)
    if status:
        raise UserError(
            f"the NVIDIA driver does not tell of its GPUs: {function} gives "
            f"{error_name(library, status)}",
            hint="check `nvidia-smi`; -d sim works without a driver",
        )


def chosen(found: list[Gpu], index: int) -> Gpu:
    """GPU `index`. Raises UserError when there is none, or it takes no programs."""
    if not found:
        raise UserError(
            "the driver shows no GPU",
            hint="CUDA_VISIBLE_DEVICES may hide it; nvidia-smi -L lists GPUs and MIG instances",
        )
    if not 0 <= index < len(found):
        raise UserError(f"there is no GPU {index}: {_shown(found)}", hint=_how_to_see_more(found))
    require_usable(found[index])
    return found[index]


def require_usable(gpu: Gpu) -> None:
    """Raises UserError when the GPU takes no programs."""
    if gpu.mode == PROHIBITED:
        raise UserError(
            f"GPU {gpu.index} takes no programs: its compute mode is Prohibited",
            hint=f"as root: {_default_mode(gpu)}; or choose another with -d cuda:N",
        )


def not_opened(gpu: Gpu, words: str) -> UserError:
    """Why the driver, by its `words`, gave no context on `gpu`."""
    if "out of memory" in words:
        return UserError(
            f"GPU {gpu.index} has no memory left for a context",
            detail=words,
            hint="close other programs on it (nvidia-smi lists them), or choose another: -d cuda:N",
            status=1,
        )
    if gpu.mode == EXCLUSIVE:
        return UserError(
            f"another process holds GPU {gpu.index}, whose compute mode lets in only one",
            detail=words,
            hint="end it (nvidia-smi lists it), choose another GPU with -d cuda:N, "
            f"or as root let in several: {_default_mode(gpu)}",
        )
    if gpu.is_instance:
        return UserError(
            f"the MIG instance {gpu.name} cannot be opened",
            detail=words,
            hint="name one that nvidia-smi -L lists: CUDA_VISIBLE_DEVICES=MIG-... gpuwatch ...",
        )
    return UserError(f"GPU {gpu.index} cannot be opened", detail=words, hint="check `nvidia-smi`")


def _default_mode(gpu: Gpu) -> str:
    return f"nvidia-smi -i {machine_number(gpu.index)} -c DEFAULT"


def machine_number(index: int) -> str:
    """What nvidia-smi calls GPU `index` of this process."""
    visible = [one.strip() for one in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    return visible[index] if index < len(visible) and visible[index] else str(index)


def _shown(found: list[Gpu]) -> str:
    names = ", ".join(f"cuda:{one.index} {one.name}" for one in found)
    return f"the driver shows {names}"


def _how_to_see_more(found: list[Gpu]) -> str:
    if any(one.is_instance for one in found):
        return (
            "CUDA shows a process one MIG instance: choose it with "
            "CUDA_VISIBLE_DEVICES=MIG-..., as nvidia-smi -L lists them"
        )
    return "`gpuwatch doctor` lists them; CUDA_VISIBLE_DEVICES hides the others"
