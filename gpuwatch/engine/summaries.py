"""What the presets' figures say, in sentences, tables and a picture of the report."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from gpuwatch.analysis.access_map import AccessMap, access_map, fitted, is_access_map, levels
from gpuwatch.analysis.maps import MapFigures
from gpuwatch.analysis.summary import Section, sections_of

_SHADES = " .:-=+*#%@"
_MAP_ROWS, _MAP_COLUMNS = 32, 96


def render(maps: Sequence[MapFigures], console: Console, *, modelled: bool) -> None:
    """Prints what is known by name of these maps; nothing for maps of other probes."""
    sections = sections_of(maps)
    if any(section.totals for section in sections):
        console.print()
        if any(section.estimated for section in sections):
            console.print("Of a sample, totals are estimates:")
    for section in sections:
        for line in section.sentences():
            unsure = " (modelled)" if section.timed and modelled else ""
            console.print(line + unsure, highlight=False)
    for section in sections:
        if section.parts_are == "class":
            console.print(_classes(section))
    for one in maps:
        if is_access_map(one):
            console.print()
            found = access_map(one)
            if found is None:
                console.print("No access to global memory was seen.")
            else:
                _print_access_map(found, console, modelled=modelled)


def _classes(section: Section) -> Table:
    """The instructions by class; columns that only totals fill are left out."""
    table = Table(box=None)
    table.add_column(section.parts_are)
    filled = [place for place, value in enumerate(section.parts[0].values) if value is not None]
    for place in filled:
        table.add_column(section.columns[place].title, justify="right")
    for row in section.parts:
        cells = (
            section.columns[place].text(row.values[place], estimated=row.estimated)
            for place in filled
        )
        table.add_row(row.name, *cells)
    return table


def _print_access_map(found: AccessMap, console: Console, *, modelled: bool) -> None:
    """Pages downwards, by the address at which each row begins, and time to the right."""
    console.print(f"Pages by time: {'; '.join(found.words(modelled=modelled))}", highlight=False)
    pages, columns = found.counts.shape
    rows, width = min(pages, _MAP_ROWS), min(columns, _MAP_COLUMNS)
    picture = levels(fitted(found.counts, rows, width), found.most, len(_SHADES) - 1)
    for place, row in enumerate(picture.tolist()):
        label = found.address(place * pages // rows)
        shades = "".join(_SHADES[level] for level in row)
        console.print(f"  ..{label} |{shades}".rstrip(), markup=False, highlight=False)
    end = f"{found.microseconds:,.0f} us"
    console.print(f"  {'0':>11} {end:>{max(width - 2, 0)}}", markup=False, highlight=False)
