"""PTX to machine code."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpuwatch import cache
from gpuwatch.errors import Location, UserError
from gpuwatch.toolchain.model import Assembled, Toolchain
from gpuwatch.toolchain.process import run

SECONDS = 300.0
"""Time limit of one run of ptxas."""

_FILE = "kernel.ptx"
_ENTRY = re.compile(r"Compiling entry function '([^']+)' for")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_SPILLS = re.compile(r"(\d+) bytes spill stores")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+) bytes smem")
_NEWER = "use a newer toolkit: --cuda-home DIR, or CUDA_HOME=DIR"
_HINTS = (
    ("Unsupported .version", f"a newer toolkit has made this PTX; {_NEWER}, or make it again"),
    (".target is higher", "it was made for a newer GPU: choose another with -d, or make it again"),
    ("for option 'gpu-name'", _NEWER),
)
"""What mends some of ptxas's refusals, by words in them."""
_ERROR = re.compile(rf"{re.escape(_FILE)}, line (\d+)\s*; (?:error|fatal)\s*: (.*)")


def assemble(toolchain: Toolchain, ptx: str, arch: str, entry: str) -> Assembled:
    """The cubin of a whole module, with ptxas's figures for `entry`; cached by content.

    Raises UserError with ptxas's own words when it refuses, placed at the PTX line that it
    names, and when the module has no such entry.
    """
    return assemble_all(toolchain, ptx, arch, [entry])[0]


def assemble_all(
    toolchain: Toolchain, ptx: str, arch: str, entries: Sequence[str]
) -> list[Assembled]:
    """The same for several entries of the module."""
    cubin, log = _cubin_and_log(toolchain, ptx, arch)
    sections = _entry_sections(log)
    return [_assembled(cubin, log, sections.get(entry, ""), entry) for entry in entries]


def _assembled(cubin: bytes, log: str, section: str, entry: str) -> Assembled:
    used = _USED.search(section)
    if used is None:
        raise UserError(f"the PTX has no entry {entry}", detail=log)
    properties = section[_own_properties(section, entry) :]
    spills = _SPILLS.search(properties)
    shared = _SHARED.search(used[2])
    return Assembled(
        cubin=cubin,
        registers=int(used[1]),
        shared_bytes=int(shared[1]) if shared else 0,
        spill_store_bytes=int(spills[1]) if spills else 0,
        log=log,
    )


def _cubin_and_log(toolchain: Toolchain, ptx: str, arch: str) -> tuple[bytes, str]:
    key = cache.key_of(["assemble", toolchain.version, arch, ptx])
    known = cache.load("cubin", key)
    if known is not None:
        head, _, cubin = known.partition(b"\n")
        return cubin, str(json.loads(head))
    cubin, log = _run_ptxas(toolchain, ptx, arch)
    cache.store("cubin", key, json.dumps(log).encode() + b"\n" + cubin)
    return cubin, log


def _run_ptxas(toolchain: Toolchain, ptx: str, arch: str) -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as name:
        folder = Path(name)
        # ptxas refuses letters beyond ASCII, which can only be in comments, even there.
        (folder / _FILE).write_bytes(ptx.encode("ascii", "replace"))
        done = run(
            [toolchain.ptxas, "-v", "-lineinfo", f"-arch={arch}", "-o", "kernel.cubin", _FILE],
            timeout=SECONDS,
            cwd=folder,
            environment={"TMPDIR": name},
        )
        if done.timed_out:
            raise UserError(f"ptxas took longer than {SECONDS:.0f} s", status=1)
        if done.status != 0:
            raise _refusal(ptx, arch, done.output)
        return (folder / "kernel.cubin").read_bytes(), done.output


def _refusal(ptx: str, arch: str, output: str) -> UserError:
    match = _ERROR.search(output)
    hint = next((hint for words, hint in _HINTS if words in output), "")
    if match is None:
        return UserError(f"ptxas refused the PTX for {arch}", detail=output, hint=hint)
    number = int(match[1])
    lines = ptx.splitlines()
    text = lines[number - 1] if 0 < number <= len(lines) else ""
    column = len(text) - len(text.lstrip()) + 1
    return UserError(
        f"ptxas refused the PTX for {arch}: {match[2].strip()}",
        at=Location("<ptx>", number, column, text),
        detail=output,
        hint=hint,
    )


def _entry_sections(log: str) -> dict[str, str]:
    """The part of the log from each entry's heading to the next one's."""
    headings = list(_ENTRY.finditer(log))
    ends = [*(heading.start() for heading in headings[1:]), len(log)]
    return {
        heading[1]: log[heading.end() : end] for heading, end in zip(headings, ends, strict=True)
    }


def _own_properties(section: str, entry: str) -> int:
    """Where the entry's own properties start: device functions have theirs in between."""
    return next((m.end() for m in _PROPERTIES.finditer(section) if m[1] == entry), 0)
