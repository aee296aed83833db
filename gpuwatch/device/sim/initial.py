"""Initial values of PTX variables as bytes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gpuwatch.errors import Location, UserError
from gpuwatch.ptx import initial
from gpuwatch.ptx.model import Module, Variable


def first_contents(
    module: Module, names: Collection[str], addresses: Mapping[str, int]
) -> dict[str, bytes]:
    """The initial values of the variables with these names; `addresses` are those of functions
    and variables."""
    return {
        variable.name: initial_bytes(module, variable, addresses)
        for variable in module.variables
        if variable.initial and variable.name in names
    }


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
