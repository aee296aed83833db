"""The memory access timeline as an SVG or PNG picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gpuwatch.analysis.access_map import AccessMap, access_map, is_access_map, levels
from gpuwatch.analysis.colours import GLOW, Rgb, blend
from gpuwatch.analysis.scale import ticks
from gpuwatch.engine.frame import Frame, launch_text
from gpuwatch.errors import UserError

_GROUND: Rgb = (16, 21, 28)
_FRAME: Rgb = (58, 71, 86)
_QUIET: Rgb = (150, 160, 172)
_TEXT: Rgb = (238, 243, 248)

_PLOT_WIDTH, _PLOT_HEIGHT = 960, 640
"""Least and about what cells take together."""
_LOWEST_CELL, _HIGHEST_CELL = 3, 24
_LEFT, _TOP, _RIGHT, _BOTTOM = 96, 92, 32, 84
_SMALL, _LARGE = 12, 17
_TICK_PIXELS, _LABEL_PIXELS = 100, 20
_SCALE_AT = 200
_STEPS = 32
"""Shades of colour."""
_MOST_TITLE = 96
_HINT = "watch the accesses with -p dmat"


@dataclass(frozen=True, slots=True)
class Box:
    x: int
    y: int
    width: int
    height: int
    colour: Rgb


@dataclass(frozen=True, slots=True)
class Label:
    """`x` and `y` are the base line's left end, middle or right end."""

    x: int
    y: int
    text: str
    size: int = _SMALL
    colour: Rgb = _QUIET
    at: Literal["start", "middle", "end"] = "start"


@dataclass(frozen=True, slots=True)
class Picture:
    width: int
    height: int
    title: str
    boxes: tuple[Box, ...]
    labels: tuple[Label, ...]


def check(path: Path) -> None:
    """Raises UserError when a picture cannot be saved under this name."""
    if path.suffix.lower() not in _WRITERS:
        raise UserError(
            f"a picture is a .svg or a .png file, not {path.name}", hint="--picture accesses.svg"
        )
    if path.suffix.lower() == ".png":
        _pillow()


def save(frame: Frame, path: Path) -> None:
    """Draws the accesses of a frame's launch. Raises UserError where there are none."""
    write = _WRITERS[path.suffix.lower()]
    picture = picture_of(frame)
    try:
        write(picture, path)
    except OSError as problem:
        raise UserError(f"{path} cannot be written: {problem.strerror}") from problem


def picture_of(frame: Frame) -> Picture:
    """Raises UserError for a frame without accesses to pages."""
    figures = next((one for one in frame.maps if is_access_map(one)), None)
    if figures is None:
        raise UserError(
            f"the probe {frame.probe} keeps no memory access timeline to draw", hint=_HINT
        )
    found = access_map(figures)
    if found is None:
        raise UserError("no access to global memory was seen, so there is nothing to draw")
    return _Layout(frame, found).picture()


class _Layout:
    """Where things are, in pixels."""

    def __init__(self, frame: Frame, found: AccessMap) -> None:
        self._frame, self._found = frame, found
        self._pages, self._columns = found.counts.shape
        self._across = -(-_PLOT_WIDTH // self._columns)
        self._down = min(_HIGHEST_CELL, max(_LOWEST_CELL, _PLOT_HEIGHT // self._pages))
        self._wide, self._high = self._columns * self._across, self._pages * self._down

    def picture(self) -> Picture:
        labels = (
            *self._heading(),
            *self._page_labels(),
            *self._time_labels(),
            *self._scale_labels(),
        )
        return Picture(
            width=_LEFT + self._wide + _RIGHT,
            height=_TOP + self._high + _BOTTOM,
            title=labels[0].text,
            boxes=(*self._axes(), *self._cells(), *self._scale()),
            labels=labels,
        )

    def _heading(self) -> Iterator[Label]:
        frame, device = self._frame, self._frame.device
        title = f"Pages by time: {frame.kernel}"
        if len(title) > _MOST_TITLE:
            title = title[: _MOST_TITLE - 3] + "..."
        shape = launch_text(frame.grid, frame.block)
        unsure = " (modelled)" if device.modelled and "modelled" not in device.name else ""
        yield Label(_LEFT, 30, title, _LARGE, _TEXT)
        yield Label(
            _LEFT, 52,
            f"{device.name}{unsure}, {device.kind}:{device.profile}; {shape}, "
            f"probe {frame.probe}",
        )  # fmt: skip
        yield Label(_LEFT, 72, "; ".join(self._found.words(modelled=device.modelled)))

    def _axes(self) -> Iterator[Box]:
        yield Box(_LEFT - 1, _TOP, 1, self._high + 1, _FRAME)
        yield Box(_LEFT - 1, _TOP + self._high, self._wide + 1, 1, _FRAME)
        for x, _ in self._times():
            yield Box(x, _TOP + self._high, 1, 5, _FRAME)

    def _cells(self) -> Iterator[Box]:
        """Cells alike beside each other are one box."""
        shades = levels(self._found.counts, self._found.most, _STEPS)
        for page, row in enumerate(shades):
            starts = np.flatnonzero(np.diff(row, prepend=-1))
            for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(row)], strict=True):
                if row[start]:
                    yield Box(
                        _LEFT + start * self._across, _TOP + page * self._down,
                        (end - start) * self._across, self._down, _shade(int(row[start])),
                    )  # fmt: skip

    def _page_labels(self) -> Iterator[Label]:
        every = -(-_LABEL_PIXELS // self._down)
        for page in range(0, self._pages, every):
            y = _TOP + page * self._down + _SMALL - 2
            yield Label(_LEFT - 8, y, f"..{self._found.address(page)}", at="end")

    def _times(self) -> Iterator[tuple[int, float]]:
        end = self._found.microseconds
        for mark in ticks(0.0, end, self._wide // _TICK_PIXELS):
            yield _LEFT + round(mark / end * self._wide), mark

    def _time_labels(self) -> Iterator[Label]:
        for x, mark in self._times():
            yield Label(x, _TOP + self._high + 20, f"{mark:,g}", at="middle")
        modelled = " (modelled)" if self._frame.device.modelled else ""
        text = f"us from the launch{modelled}; rows: pages by their address modulo 16 MiB"
        if self._found.folded:
            text = text.replace("from the launch", "of a folded time")
        yield Label(_LEFT, _TOP + self._high + 40, text)

    def _scale(self) -> Iterator[Box]:
        for step in range(_STEPS):
            yield Box(_LEFT + _SCALE_AT + 6 * step, _TOP + self._high + 56, 6, 12, _shade(step + 1))

    def _scale_labels(self) -> Iterator[Label]:
        y = _TOP + self._high + 67
        yield Label(_LEFT, y, "accesses of warps in a cell")
        yield Label(_LEFT + _SCALE_AT - 8, y, "1", colour=_TEXT, at="end")
        yield Label(_LEFT + _SCALE_AT + 8 + 6 * _STEPS, y, f"{self._found.most:,}", colour=_TEXT)


def _shade(level: int) -> Rgb:
    return blend(level / _STEPS, GLOW)


# ---- files


def svg(picture: Picture) -> str:
    size = f'width="{picture.width}" height="{picture.height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'viewBox="0 0 {picture.width} {picture.height}" font-family="sans-serif">',
        f"<title>{escape(picture.title)}</title>",
        f'<rect {size} fill="{_hex(_GROUND)}"/>',
        '<g shape-rendering="crispEdges">',
    ]
    lines += [
        f'<rect x="{one.x}" y="{one.y}" width="{one.width}" height="{one.height}" '
        f'fill="{_hex(one.colour)}"/>'
        for one in picture.boxes
    ]
    lines.append("</g>")
    lines += [
        f'<text x="{one.x}" y="{one.y}" font-size="{one.size}" fill="{_hex(one.colour)}" '
        f'text-anchor="{one.at}">{escape(one.text)}</text>'
        for one in picture.labels
    ]
    return "\n".join([*lines, "</svg>", ""])


def _hex(colour: Rgb) -> str:
    return "#" + bytes(colour).hex()


def _write_svg(picture: Picture, path: Path) -> None:
    path.write_text(svg(picture), encoding="utf-8")


def _write_png(picture: Picture, path: Path) -> None:
    image_of, draw_on, font_of = _pillow()
    image = image_of("RGB", (picture.width, picture.height), _GROUND)
    draw = draw_on(image)
    for box in picture.boxes:
        corner = (box.x + box.width - 1, box.y + box.height - 1)
        draw.rectangle(((box.x, box.y), corner), fill=box.colour)
    for one in picture.labels:
        anchor = {"start": "ls", "middle": "ms", "end": "rs"}[one.at]
        draw.text((one.x, one.y), one.text, one.colour, font_of(one.size), anchor)
    image.save(path)


def _pillow() -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """What makes an image, a pen for it, and a font."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as problem:
        raise UserError(
            "PNG needs Pillow, which is not installed",
            hint="pip install 'gpuwatch-live[picture]', or save a .svg",
        ) from problem
    return Image.new, ImageDraw.Draw, ImageFont.load_default


_WRITERS: dict[str, Callable[[Picture, Path], None]] = {".svg": _write_svg, ".png": _write_png}
