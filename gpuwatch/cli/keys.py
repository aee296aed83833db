"""`gpuwatch keys`: every key, and the action that other keys can be given to."""

from __future__ import annotations

import argparse

from gpuwatch.cli.arguments import base_parser
from gpuwatch.cli.user_keys import keymap_file, user_keymap
from gpuwatch.errors import UserError
from gpuwatch.tui.keymap import KEYS, Keymap


def parser(command: str) -> argparse.ArgumentParser:
    return base_parser(command)


def run(_given: argparse.Namespace) -> int:
    """Raises UserError for the user's file, behind the keys as they come."""
    try:
        _print(user_keymap())
    except UserError:
        _print(Keymap())
        raise
    return 0


def _print(keymap: Keymap) -> None:
    rows = [("key", "action", "where", "what it does")]
    rows += [
        (key.text, key.id or "-", where, key.help)
        for where in KEYS
        for key in keymap.table[where]
        if key.help
    ]
    for name, action, where, text in rows:
        print(f"{name:<14}  {action:<11}  {where:<10}  {text}")
    print(f"\nOther keys for an action go into {keymap_file()}:")
    print('    pause = "P"\n    timeline = "f5,ctrl+t"', flush=True)
