"""The user's own keys, from `keymap.toml` in the configuration folder."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.probe.language import near
from gpuwatch.probe.reading import SourceText
from gpuwatch.probe.toml_places import Places, read_document
from gpuwatch.tui.keymap import KEYS, Keymap, key_text, normal_name
from gpuwatch.tui.remembered import config_folder

IDS = tuple(dict.fromkeys(key.id for keys in KEYS.values() for key in keys if key.id))
_LISTED = "`gpuwatch keys` lists the actions"
_NAMES = "a character, or a name such as f5, ctrl+t, space, comma, pageup"


def keymap_file() -> Path:
    return config_folder() / "keymap.toml"


def user_keymap() -> Keymap:
    """The keys as the user has them. Raises UserError with the place of what cannot be."""
    file = keymap_file()
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Keymap()
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(
            f"{file} cannot be read: {problem}", hint="correct or delete it"
        ) from problem
    return parse(text, str(file))


def parse(text: str, file: str) -> Keymap:
    """The keymap of a text that gives keys to actions: `pause = "P,f9"`."""
    source = SourceText(file, text)
    document = read_document(source)
    places = Places(source)
    keymap = Keymap({action: _keys(action, given, places) for action, given in document.items()})
    for clash in keymap.clashes():
        other = clash.other.id or clash.other.help or "a probe"
        raise UserError(
            f"'{key_text(clash.key)}' is a key of {clash.moved.id} and of {other}",
            at=places.at(clash.moved.id),
            hint=f"give {clash.moved.id} another key; {_LISTED}",
        )
    return keymap


def _keys(action: str, given: object, places: Places) -> str:
    """The keys of an action as Textual names them."""
    at = places.at(action)
    if action not in IDS:
        raise UserError(
            f"there is no action '{action}'", at=at, hint=f"{near(action, IDS)}; {_LISTED}"
        )
    if not isinstance(given, str):
        raise UserError(f"the keys of {action} are no text", at=at, hint=f'{action} = "f9"')
    names = []
    for key in map(str.strip, given.split(",")):
        names.append(normal_name(key) if key else "")
        if not names[-1]:
            raise UserError(f"no key is called '{key}'", at=at, hint=f"write {_NAMES}")
    return ",".join(dict.fromkeys(names))
