"""Colours on a terminal that has sixteen."""

from __future__ import annotations

import pytest
import textual.color
from rich.color import Color
from rich.segment import Segment
from rich.style import Style

from gpuwatch.tui import theme
from gpuwatch.tui.few_colours import SixteenColours, of_sixteen


@pytest.mark.parametrize(
    ("color", "name"),
    [
        (theme.ORANGE, "bright_yellow"), (theme.RED, "bright_red"), (theme.BLUE, "bright_blue"),
        (theme.BACKGROUND, "black"), (theme.LINE, "bright_black"), (theme.GREY, "white"),
        (theme.FOREGROUND, "bright_white"), ("#b3261e", "red"), ("#2b4a70", "blue"),
        ("#ff0040", "bright_red"), ("#00ff00", "bright_green"), ("cyan", "cyan"),
    ],
)  # fmt: skip
def test_a_hue_keeps_its_name(color: str, name: str) -> None:
    assert of_sixteen(Color.parse(color)).name == name


def test_the_ramp_goes_from_blue_over_grey_to_yellow() -> None:
    colors = [theme.ramp(shade / 31).color for shade in range(32)]
    names = [of_sixteen(color).name for color in colors if color is not None]
    assert list(dict.fromkeys(names)) == ["bright_blue", "white", "bright_yellow"]


def test_all_else_of_a_style_stays() -> None:
    segments = [Segment("a", Style(color=theme.RED, bold=True)), Segment("b")]
    changed = SixteenColours().apply(segments, textual.color.Color(0, 0, 0))
    assert changed == [Segment("a", Style(color="bright_red", bold=True)), Segment("b")]
