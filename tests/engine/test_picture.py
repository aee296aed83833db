"""Pictures of the memory access timeline, read back."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from preset_maps import access_counts, frame_of

from gpuwatch.analysis.colours import GLOW, blend
from gpuwatch.engine import picture
from gpuwatch.engine.picture import Picture, picture_of, svg
from gpuwatch.errors import UserError

PAGES, COLUMNS = 40, 42
"""Of the made-up accesses: 960 / 42 pixels across, 640 / 40 down."""
ACROSS, DOWN = 23, 16
LEFT, TOP = 96, 92
GROUND = (16, 21, 28)


def place(page: int, column: int) -> tuple[int, int]:
    """A pixel within a cell."""
    return LEFT + column * ACROSS + ACROSS // 2, TOP + page * DOWN + DOWN // 2


def colour(count: int) -> tuple[int, int, int]:
    return blend(-(-count * 32 // 1_000) / 32, GLOW) if count else GROUND


def test_a_png_has_every_cell_in_the_colour_of_its_count(tmp_path: Path) -> None:
    frame = frame_of("dmat")
    picture.save(frame, tmp_path / "accesses.png")
    with Image.open(tmp_path / "accesses.png") as image:
        assert image.size == (LEFT + COLUMNS * ACROSS + 32, TOP + PAGES * DOWN + 84)
        counts = access_counts()[3 : 3 + PAGES, :COLUMNS]
        for page, column in np.ndindex(counts.shape):
            assert image.getpixel(place(page, column)) == colour(int(counts[page, column]))
        heading = image.crop((LEFT, 10, LEFT + 400, 34)).getextrema()
        assert all(low < 60 and high > 200 for low, high in heading)


def test_an_svg_is_xml_with_the_same_cells_and_its_words(tmp_path: Path) -> None:
    frame = replace(frame_of("dmat"), kernel="gemm<float>(float const*, int)")
    picture.save(frame, tmp_path / "accesses.SVG")
    root = ElementTree.parse(tmp_path / "accesses.SVG").getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert root.get("width") == str(LEFT + COLUMNS * ACROSS + 32)
    boxes = {
        (int(one.get("x", "")), int(one.get("y", ""))): (one.get("width"), one.get("fill"))
        for one in root.findall(f"{space}g/{space}rect")
    }
    wide = (str(COLUMNS * ACROSS), "#ffe9be")
    assert boxes[LEFT, TOP + 17 * DOWN] == wide
    assert boxes[LEFT + ACROSS, TOP + DOWN] == (str(3 * ACROSS), "#" + bytes(colour(72)).hex())
    words = [one.text or "" for one in root.findall(f"{space}text")]
    assert words[0] == "Pages by time: gemm<float>(float const*, int)"
    assert words[1].startswith("NVIDIA A10 (modelled), sim:a10; <<<32x43, 32x24>>>")
    assert words[2].startswith("172 us modelled; up to 1,000 accesses of a page in 4.1 us")
    assert {"..030000", "100", "1", "1,000"} <= set(words)
    assert any("us from the launch (modelled)" in word for word in words)


def _labels_fit(found: Picture) -> bool:
    return all(0 <= one.x <= found.width and 0 < one.y < found.height for one in found.labels)


@pytest.mark.parametrize("pages", [1, 200])
def test_few_and_many_pages(pages: int) -> None:
    counts = np.zeros_like(access_counts())
    counts[:pages, 0] = 5
    frame = frame_of("dmat")
    buckets = frame.maps[0].buckets
    assert buckets is not None
    one = replace(frame.maps[0], buckets=replace(buckets, counts=counts.reshape(-1)))
    found = picture_of(replace(frame, maps=(one,)))
    assert _labels_fit(found) and found.height < 1000
    assert len([box for box in found.boxes if box.x == LEFT and box.width == 960]) == pages
    ElementTree.fromstring(svg(found))


def test_a_probe_without_a_timeline_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gmem_traffic keeps no memory access timeline") as caught:
        picture.save(frame_of("gmem_traffic"), tmp_path / "a.svg")
    assert "-p dmat" in caught.value.hint
    assert not (tmp_path / "a.svg").exists()


def test_other_names_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"not a\.pdf"):
        picture.check(Path("a.pdf"))
    with pytest.raises(UserError, match="cannot be written: No such file"):
        picture.save(frame_of("dmat"), tmp_path / "no" / "a.svg")
    picture.check(Path("a.svg"))


def test_png_without_pillow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UserError, match="Pillow") as caught:
        picture.check(Path("a.png"))
    assert "gpuwatch-live[picture]" in caught.value.hint
    picture.check(Path("a.svg"))
