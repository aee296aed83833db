"""What the screen is drawn with on terminals of few colours, of many, and of none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from real_terminal import FAKE, Terminal

pytestmark = pytest.mark.terminal

SIXTEEN = (
    (0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205),
    (229, 229, 229), (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255),
    (255, 0, 255), (0, 255, 255), (255, 255, 255),
)  # fmt: skip
"""xterm's."""
STEPS = (0, 95, 135, 175, 215, 255)
PARTS = re.compile(r"\x1b\[([0-9;]*)m|\x1b[^m]*|([^\x1b\n])")
LEAST_CONTRAST = 3.0

Rgb = tuple[int, int, int]


@dataclass(frozen=True)
class Cell:
    """A character; its colours as SGR has them, "" for the terminal's own, and as they look."""

    text: str
    color: str
    background: str

    @property
    def contrast(self) -> float:
        """That of WCAG, 1 for none to 21 for black on white."""
        light, dark = sorted(
            (luminance(seen(self.color, SIXTEEN[7])), luminance(seen(self.background, SIXTEEN[0]))),
            reverse=True,
        )
        return (light + 0.05) / (dark + 0.05)


def luminance(color: Rgb) -> float:
    parts = [(part / 255) ** 2.2 for part in color]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def seen(code: str, own: Rgb) -> Rgb:
    """What a colour looks like; `own` is the terminal's."""
    numbers = [int(part) for part in code.split(";") if part]
    if not numbers:
        return own
    if numbers[1:2] == [2]:
        return numbers[2], numbers[3], numbers[4]
    index = numbers[2] if numbers[1:2] == [5] else numbers[0] % 10 + 8 * (numbers[0] >= 90)
    if index < 16:
        return SIXTEEN[index]
    if index >= 232:
        return (8 + 10 * (index - 232),) * 3
    place = index - 16
    return STEPS[place // 36], STEPS[place // 6 % 6], STEPS[place % 6]


def cells(screen: str) -> Iterator[Cell]:
    """Those of a screen with its escape sequences that are not blank."""
    color = background = ""
    for found in PARTS.finditer(screen):
        if found[1] is not None:
            color, background = after(found[1], color, background)
        elif found[2] is not None and not found[2].isspace():
            yield Cell(found[2], color, background)


def after(sequence: str, color: str, background: str) -> tuple[str, str]:
    """Colours behind an SGR sequence."""
    for code in re.findall(r"[34]8;5;\d+|[34]8;2;\d+;\d+;\d+|\d+", sequence or "0"):
        first = int(code.split(";")[0])
        if first == 0:
            color = background = ""
        elif 30 <= first <= 39 or 90 <= first <= 97:
            color = "" if first == 39 else code
        elif 40 <= first <= 49 or 100 <= first <= 107:
            background = "" if first == 49 else code
    return color, background


def depths(screen: str) -> set[str]:
    """Of all colours that a screen names: 16, 256 or true."""
    codes = {code for cell in cells(screen) for code in (cell.color, cell.background) if code}
    parts = [code.split(";") for code in codes]
    return {{"2": "true", "5": "256"}[part[1]] if part[1:] else "16" for part in parts}


def drawn(terminal: Terminal, *environment: str, words: tuple[str, ...] = ()) -> str:
    """The live screen in a terminal of which `environment` tells the colours."""
    plain = ["env", "-u", "COLORTERM", "-u", "NO_COLOR", *environment]
    terminal.start([*plain, *FAKE, *words])
    terminal.wait_for("SM occupancy", "MODELLED", "Warps", "within its SM")
    return terminal.screen()


ENVIRONMENTS = {
    "16": ("TERM=xterm",),
    "256": ("TERM=xterm-256color",),
    "true": ("TERM=xterm-256color", "COLORTERM=truecolor"),
}


@pytest.mark.parametrize("grey", [False, True], ids=["colour", "NO_COLOR"])
@pytest.mark.parametrize("depth", ["16", "256", "true"])
def test_only_such_colours_and_every_word_can_be_read(
    terminal: Terminal, depth: str, grey: bool
) -> None:
    screen = drawn(terminal, *ENVIRONMENTS[depth], *(["NO_COLOR=1"] if grey else []))
    assert depths(screen) == {depth}
    words = [cell for cell in cells(screen) if cell.text.isalnum()]
    assert len(words) > 1000
    assert [cell for cell in words if cell.contrast < LEAST_CONTRAST] == []
    shown = {seen(cell.color, SIXTEEN[7]) for cell in cells(screen)}
    greys = {max(color) - min(color) <= 2 for color in shown}
    assert greys == ({True} if grey else {True, False})
    terminal.press("2")
    terminal.wait_for("warp_duration")
    terminal.press("q")
    terminal.wait_for("status=0")


@pytest.mark.parametrize("depth", ["16", "256", "true"])
@pytest.mark.parametrize("keys", [("?",), ("/",), ("Down",)], ids=["help", "filter", "cursor"])
def test_what_opens_can_be_read(terminal: Terminal, depth: str, keys: tuple[str, ...]) -> None:
    drawn(terminal, *ENVIRONMENTS[depth])
    terminal.press(*keys)
    screen = terminal.wait_for(
        {"?": "a key, or words", "/": "enter keeps it"}.get(keys[0], "\u25b6")
    )
    words = [cell for cell in cells(screen) if cell.text.isalnum()]
    assert [cell for cell in words if cell.contrast < LEAST_CONTRAST] == []


def test_full_and_wrong_stay_apart_in_sixteen_colours(terminal: Terminal) -> None:
    screen = drawn(terminal, *ENVIRONMENTS["16"])
    bars = {seen(cell.color, SIXTEEN[7]) for cell in cells(screen) if cell.text == "\u2588"}
    assert SIXTEEN[11] in bars
    assert not bars & {SIXTEEN[1], SIXTEEN[9]}


@pytest.mark.parametrize("depth", ["16", "256"])
def test_ascii_alone(terminal: Terminal, depth: str) -> None:
    screen = drawn(terminal, *ENVIRONMENTS[depth], "LC_ALL=C", words=("ascii",))
    assert screen.isascii()
    assert depths(screen) == {depth}
    for keys, text in (
        (("t", "p"), "Timeline"),
        (("?",), "a key, or words"),
        (("Escape",), "Timeline"),
        (("C-p",), "probe block_sched: "),
        (("Escape",), "Timeline"),
        (("o",), "there is one source"),
    ):
        terminal.press(*keys)
        screen = terminal.wait_for(text)
        assert screen.isascii(), screen


def test_an_error_in_ascii_alone(terminal: Terminal) -> None:
    terminal.start(["env", "LC_ALL=C", *FAKE, "ascii", "fail"])
    screen = terminal.wait_for("identifier", "hint:")
    assert screen.isascii(), screen
