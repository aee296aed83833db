"""IR text to machine code, through the cache of compiled objects."""

from __future__ import annotations

import functools

import llvmlite
import llvmlite.binding as llvm

from gpuwatch import cache
from gpuwatch.device.sim.driver import ENTRY

_KIND = "sim-object-2"
"""Its number changes with the passes below, which are no part of the text that is compiled."""


@functools.cache
def _initialized() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _target_machine() -> llvm.TargetMachine:
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        reloc="pic",
        codemodel="small",
    )


def _object_code(text: str) -> bytes:
    machine = _target_machine()
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_default_triple()
    module.data_layout = str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.slp_vectorization = False
    options.loop_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


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
