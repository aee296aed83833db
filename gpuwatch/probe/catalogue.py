"""Presets by name, and the folders that the wheel ships."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.probe.compose import compose
from gpuwatch.probe.language import near
from gpuwatch.probe.model import Program
from gpuwatch.probe.python_form import parse_python
from gpuwatch.probe.toml_form import parse_toml
from gpuwatch.probe.verify import verify

PRESETS = (
    "block_sched.py",
    "warp_duration.py",
    "gmem_traffic.py",
    "smem_conflicts.py",
    "instr_mix.py",
    "barrier_wait.py",
    "divergence.py",
    "mem_latency.py",
    "dmat.py",
)
"""Files of the presets; the first has key 1."""

FORMS: dict[str, Callable[[str, str], Program]] = {".py": parse_python, ".toml": parse_toml}

_PACKAGE = Path(__file__).resolve().parents[1]


def folder(name: str) -> Path:
    """The folder "probes" or "kernels": inside the installed package, or beside it in a checkout.

    Raises UserError when there is neither.
    """
    for candidate in (_PACKAGE / f"_{name}", _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise UserError(f"the folder {name} is not installed", hint="install gpuwatch again")


def presets() -> list[tuple[int, str, Path]]:
    """Key (1 to 9), name and file of each preset."""
    home = folder("probes")
    return [(key, Path(file).stem, home / file) for key, file in enumerate(PRESETS, 1)]


def load(names: str) -> Program:
    """Reads and verifies a preset, by its name, or a probe file (.py or .toml), or several with
    commas between them, as one program.

    Raises UserError for what cannot be found or read, and for every mistake in it.
    """
    if "," in names and not Path(names).exists():
        parts = [part.strip() for part in names.split(",") if part.strip()]
        program = compose([_load(part) for part in parts])
        verify(program)
        return program
    return _load(names)


def _load(name_or_path: str) -> Program:
    named = {name: path for _, name, path in presets()}
    path = named.get(name_or_path, Path(name_or_path))
    if path.suffix not in FORMS:
        what = "a probe file ends in .py or .toml" if path.suffix else "no such probe"
        raise UserError(f"{what}: {name_or_path}", hint=_advice(name_or_path, named))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        hint = _advice(path.stem, named)
        raise UserError(f"there is no probe file {path}", hint=hint) from error
    except (OSError, UnicodeDecodeError, ValueError) as error:
        hint = "a probe file is readable UTF-8 text"
        raise UserError(f"cannot read {path}: {error}", hint=hint) from error
    shown = f"probes/{path.name}" if path in named.values() else str(path)
    program = FORMS[path.suffix](text, shown)
    verify(program)
    return replace(program, source=str(path))


def _advice(name: str, named: dict[str, Path]) -> str:
    files = [f"{name}{suffix}" for suffix in FORMS if Path(f"{name}{suffix}").is_file()]
    if files:
        return f"did you mean the file {' or '.join(files)}?"
    close = near(name, named)
    presets = f"presets: {', '.join(named)}"
    return f"{presets}; {close}" if close.startswith("did") else presets
