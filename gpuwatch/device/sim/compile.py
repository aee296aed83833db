"""IR text to machine code, through the cache of compiled objects."""

from __future__ import annotations

import functools

import llvmlite
import llvmlite.binding as llvm

from gpuwatch import cache
from gpuwatch.device.sim.driver import ENTRY

_KIND = "sim-object-4"
"""Its number changes with the passes below, which are no part of the text that is compiled."""
_LONG = 45_000
"""Lines from which a program is translated as it stands: a straight line of so many takes LLVM's
passes, and its choice of registers, minutes."""


@functools.cache
def _initialized() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _target_machine(optimization: int = 2) -> llvm.TargetMachine:
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=optimization,
        reloc="pic",
        codemodel="small",
    )


def _object_code(text: str) -> bytes:
    is_long = text.count("\n") > _LONG
    machine = _target_machine(0 if is_long else 2)
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(machine.target_data)
    module.verify()
    if not is_long:
        _optimize(module, machine)
    return bytes(machine.emit_object(module))


def _optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Only what pays in a simulated launch: the rest of LLVM's own choice of passes takes longer
    than all of the translation, and launches are no shorter for it."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    options = llvm.create_pipeline_tuning_options()
    passes.run(module, llvm.create_pass_builder(machine, options))


class Code:
    """Loaded machine code; `address` is that of the block driver and valid while this lives."""

    def __init__(self, text: str) -> None:
        _initialized()
        features = llvm.get_host_cpu_features().flatten()
        key = cache.key_of((text, llvmlite.__version__, llvm.get_host_cpu_name(), features))
        code = cache.load(_KIND, key)
        if code is None:
            code = _object_code(text)
            cache.store(_KIND, key, code)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.address = int(self._engine.get_function_address(ENTRY))
