"""Initial values of PTX variables as bytes."""

from __future__ import annotations

from collections.abc import Mapping

from gpuwatch.errors import Location, UserError
from gpuwatch.ptx import initial
from gpuwatch.ptx.model import Module, Variable


def initial_bytes(module: Module, variable: Variable, addresses: Mapping[str, int]) -> bytes:
    """The bytes of `variable`'s initialiser; symbols become their addresses."""

    def place(address: initial.Address) -> int:
        if address.symbol not in addresses:
            raise UserError(f"{address.symbol} has no address")
        return address.value(addresses[address.symbol])

    try:
        return initial.initial_bytes(variable, place)
    except UserError as problem:
        raise UserError(
            f"the simulator cannot read the initial value of {variable.name}: {problem.message}",
            at=Location.in_text(module.source, module.text, variable.start),
            hint="run this kernel on a GPU (--device cuda)",
        ) from problem
