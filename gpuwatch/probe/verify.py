"""The verifier: what a program must keep to before it comes near a kernel."""

from __future__ import annotations

from collections.abc import Iterator

from gpuwatch.errors import Location, UserError
from gpuwatch.probe.language import MAX_REGISTERS, TYPE_BYTES
from gpuwatch.probe.model import Program
from gpuwatch.probe.verify_map import verify_map
from gpuwatch.probe.verify_probe import ProbeVerifier
from gpuwatch.probe.walk import saves


def verify(program: Program) -> None:
    """Raises UserError, with the place, for the first rule that the program breaks.

    Of maps: known types and levels; a record holds its fields and is a multiple of 4 bytes; at
    least one record per slot; scale, low and step make sense (`verify_map`). Of probes: known
    positions and levels; helpers that the position has; a save gives every field of an existing
    map, not narrower than the probe, a value that fits it; registers are declared; PTX texts only
    compute (`ProbeVerifier`, `verify_ptx`). All probes that save to a map have one sample.

    What passes writes no register of the kernel and no memory but its maps, within their
    bounds, and runs from its first line to its last.
    """
    for map_ in program.maps:
        verify_map(map_)
    _verify_names(program)
    _verify_registers(program)
    if not program.probes:
        raise UserError(
            "the program has no probe",
            hint="add an @probe function, or a [probe.NAME] table",
            at=Location(program.source, 1),
        )
    for probe in program.probes:
        ProbeVerifier(program, probe).verify()
    _verify_samples(program)


def _verify_registers(program: Program) -> None:
    at = Location(program.source, 1)
    for register in program.registers:
        if register.type not in TYPE_BYTES:
            raise UserError(
                f"register {register.name} has unknown type {register.type}",
                hint=f"types: {', '.join(TYPE_BYTES)}",
                at=at,
            )
        if not register.name.isascii():
            raise UserError(
                f"register {register.name} has a name that PTX cannot have",
                hint="use letters a to z, digits and _",
                at=at,
            )
    if len(program.registers) > MAX_REGISTERS:
        raise UserError(
            f"{len(program.registers)} registers are too many",
            hint=f"use at most {MAX_REGISTERS}",
            at=at,
        )


def _verify_names(program: Program) -> None:
    """Two halves of a TOML probe share its name, anything else has one of its own."""
    for kind, names in (
        ("map", [map_.name for map_ in program.maps]),
        ("register", [register.name for register in program.registers]),
        ("probe", list(_probe_names(program))),
    ):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UserError(
                f"there are two {kind}s named {twice}",
                hint="rename one of them",
                at=Location(program.source, 1),
            )


def _probe_names(program: Program) -> Iterator[str]:
    previous = None
    for probe in program.probes:
        half = previous is not None and (previous.name, previous.position, previous.before) == (
            probe.name,
            probe.position,
            not probe.before,
        )
        if not half:
            yield probe.name
        previous = probe


def _verify_samples(program: Program) -> None:
    maps = {map_.name: map_ for map_ in program.maps}
    for probe in program.probes:
        for save in saves(probe.body):
            map_ = maps[save.map]
            if (map_.sample, map_.sample_unit) != (probe.sample, probe.sample_unit):
                raise UserError(
                    f"map {map_.name} would mix records sampled 1 in {map_.sample} "
                    f"{map_.sample_unit}s and 1 in {probe.sample} {probe.sample_unit}s",
                    hint="give the probes that save to it the same sample, or a map each",
                    at=save.at,
                )
            if (map_.level, map_.sample_unit) == ("block", "warp") and map_.sample > 1:
                raise UserError(
                    f"map {map_.name} has a slot per block, of which a sample of warps is no part",
                    hint='give the probe sample_unit="block"',
                    at=save.at,
                )
