"""What is remembered from one run to the next, in the user's configuration folder."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import platformdirs

from gpuwatch.errors import UserError


@dataclass(frozen=True, slots=True)
class Remembered:
    """How the live screen was left: sorting of the table ("" for the default) and its panes."""

    sort: str = ""
    descending: bool = True
    timeline: bool = False
    below: str = ""
    hidden: tuple[str, ...] = ()


def config_folder() -> Path:
    """`GPUWATCH_CONFIG_DIR`, or the user's own configuration folder."""
    chosen = os.environ.get("GPUWATCH_CONFIG_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_config_dir("gpuwatch"))


def state_file() -> Path:
    return config_folder() / "state.json"


def recall() -> Remembered:
    """What was saved last; the defaults where nothing was. Raises UserError for a file that is
    none of ours."""
    file = state_file()
    try:
        found = json.loads(file.read_text())
        kept = {field.name: found[field.name] for field in fields(Remembered)}
        kept["hidden"] = tuple(map(str, kept["hidden"]))
        return Remembered(**kept)
    except FileNotFoundError:
        return Remembered()
    except (ValueError, KeyError, TypeError) as problem:
        raise UserError(
            f"{file} cannot be read: {problem!r}", hint="delete it; it is written anew"
        ) from problem


def remember(state: Remembered) -> None:
    """Saves it whole or not at all. Raises OSError where nothing can be written."""
    file = state_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(asdict(state), indent=2))
    part.replace(file)
