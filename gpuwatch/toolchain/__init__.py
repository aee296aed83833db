"""nvcc and ptxas: finding them, running them, remembering what they gave."""

from gpuwatch.toolchain.assemble import assemble, assemble_all
from gpuwatch.toolchain.compile import compile_to_ptx
from gpuwatch.toolchain.demangle import demangle
from gpuwatch.toolchain.disassemble import disassemble
from gpuwatch.toolchain.find import find
from gpuwatch.toolchain.machine_code import MachineInstruction, read_machine_code
from gpuwatch.toolchain.model import Assembled, Toolchain

__all__ = [
    "Assembled",
    "MachineInstruction",
    "Toolchain",
    "assemble",
    "assemble_all",
    "compile_to_ptx",
    "demangle",
    "disassemble",
    "find",
    "read_machine_code",
]
