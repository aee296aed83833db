"""`gpuwatch serve`: the live view in a browser."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.cli.arguments import options_of, positive, watch_parser
from gpuwatch.cli.sessions import check
from gpuwatch.cli.user_keys import user_keymap
from gpuwatch.errors import UserError
from gpuwatch.tui.remembered import recall

HOST = "localhost"
PORT = 8000
SESSIONS = 4
_DESCRIPTION = """\
Shows the live view in a browser. Each tab is a process of its own, which ends with the tab.
There is no password: whoever reaches the address uses gpuwatch as you, so that --host is for
a network that is yours alone. From elsewhere: ssh -L 8000:localhost:8000 THIS-MACHINE."""


def parser(command: str) -> argparse.ArgumentParser:
    made = watch_parser(command)
    made.description = _DESCRIPTION
    _add_own(made)
    return made


def _add_own(to: argparse.ArgumentParser) -> None:
    add = to.add_argument_group("the server").add_argument
    add("--host", default=HOST, metavar="H", help=f"address to listen on (default {HOST})")
    add("--port", type=_port, default=PORT, metavar="P", help=f"default {PORT}")
    most = f"most tabs at once (default {SESSIONS})"
    add("--sessions", type=positive, default=SESSIONS, metavar="N", help=most)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 1 to 65535")
    return int(text)


def run(given: argparse.Namespace) -> int:
    try:
        from gpuwatch.tui.browser import LiveServer
    except ImportError as problem:
        raise UserError(
            "the live view in a browser needs the package textual-serve, which is not installed",
            hint="pip install 'gpuwatch-live[serve]'",
        ) from problem
    _check(given)
    title = f"gpuwatch {Path(given.source).name}"
    LiveServer(_command(given), given.host, given.port, given.sessions, title).serve()
    return 0


def _check(given: argparse.Namespace) -> None:
    """Raises UserError for what would end every session at once."""
    check(options_of(given))
    recall()
    user_keymap()


def _command(given: argparse.Namespace) -> list[str]:
    """What shows the live view: the same words without those of the server."""
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    _add_own(own)
    words = own.parse_known_args(given.words)[1]
    program = ["--", *given.arguments] if given.arguments else []
    return [sys.executable, "-P", "-m", "gpuwatch", *words, *program]
