"""`gpuwatch capture`: one launch of a program stored with its memory."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from gpuwatch.cli.arguments import base_parser, count
from gpuwatch.cli.programs import (
    Complaints,
    add_program,
    exit_status,
    program_options,
    require_room,
    run_to_end,
)
from gpuwatch.engine.program_attachment import Stored
from gpuwatch.engine.program_session import ProgramSession
from gpuwatch.errors import UserError
from gpuwatch.launch.stored import PARAMETERS, require_free, store
from gpuwatch.ptx.parameters import block_bytes


def parser(command: str) -> argparse.ArgumentParser:
    result = base_parser(command)
    add_program(result, probing=False)
    add = result.add_argument
    add("--launch", type=count, default=0, metavar="N", help="which launch of it, from 0")
    add("-o", "--output", metavar="DIR", required=True, help="the folder")
    return result


def run(given: argparse.Namespace) -> int:
    """Gives the exit status of the program, 1 where nothing was stored although it ended well."""
    target = Path(given.output)
    require_free(target)
    require_room(target)
    if not given.kernel:
        raise UserError("which kernel is to be stored?", hint="name it, or a part of it, with -k")
    session = ProgramSession(program_options(given, live=False), log=Complaints())
    session.storing = given.launch
    done: list[Path] = []

    def each() -> None:
        if session.stored is not None and not done and not session.stored.problem:
            done.append(_stored(session.stored, target, given))

    try:
        status = run_to_end(session, each)
        each()
    finally:
        session.close()
        session.remove()
    if not done:
        _tell_none(session, given)
    return exit_status(status) or (0 if done else 1)


def _stored(found: Stored, target: Path, given: argparse.Namespace) -> Path:
    process, kernel = found.process, found.kernel
    module, _ = process.module(kernel, process.arch)
    facts = {
        "kernel": kernel.name,
        "launch": str(given.launch),
        "command": shlex.join(given.arguments),
        "device": next(iter(process.devices.values())).name,
    }
    entry = next(one for one in module.entries() if one.name == kernel.mangled)
    if (process.link.folder / PARAMETERS).stat().st_size < block_bytes(entry.parameters):
        raise UserError(
            f"the driver did not tell the parameters of {kernel.name}",
            hint="drivers since CUDA 12.4 do; nothing was stored",
            status=1,
        )
    name = kernel.name.partition("(")[0].rpartition("::")[2]
    source = store(process.link.folder, target, name, module.text, facts)
    size = sum(one.stat().st_size for one in target.iterdir())
    again = f"gpuwatch {shlex.quote(str(target))}"
    print(f"{target}: launch {given.launch} of {kernel.name}, {size:,} bytes", file=sys.stderr)
    print(f"launch it again and again: {again}", file=sys.stderr)
    return source


def _tell_none(session: ProgramSession, given: argparse.Namespace) -> None:
    if session.stored is not None:
        why = session.stored.problem
    else:
        why = f"no launch {given.launch} of a kernel with {given.kernel!r} in its name was seen"
    problem = UserError(
        f"nothing was stored: {why}",
        hint="`gpuwatch run --no-screen -- CMD` lists the kernels and their launches",
        status=1,
    )
    print(f"gpuwatch: {problem.render()}", file=sys.stderr)
