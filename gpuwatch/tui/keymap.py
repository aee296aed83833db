"""Every key, once: bindings, footer and help are made from this table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.binding import Binding, BindingType

Where = Literal["everywhere", "live", "replay", "start"]
"""A replay has the live keys too, where it gives them no other meaning."""


@dataclass(frozen=True, slots=True)
class Key:
    """`keys` as Textual names them, `shown` as a reader does. An empty `label` keeps it out of
    the footer; an empty `action` is a key that the focused widget handles itself."""

    keys: str
    action: str
    shown: str
    label: str
    help: str
    where: Where
    priority: bool = False


KEYS: tuple[Key, ...] = (
    Key("enter", "start", "enter", "start", "start watching", "start", priority=True),
    Key("tab", "app.focus_next", "tab", "other list", "go to the other list", "start"),
    Key("up,down", "", "up/down", "choose", "choose a kernel or a probe", "start"),
    *(
        Key(
            str(n),
            f"probe({n})",
            "1-9",
            "probe" if n == 1 else "",
            "switch the probe; the kernel keeps running" if n == 1 else "",
            "live",
        )
        for n in range(1, 10)
    ),
    Key("k", "pick_kernel", "k", "kernel", "choose another kernel of the file", "live"),
    Key("o", "other_source", "o", "", "the next source; the former becomes the baseline", "live"),
    Key("l", "edit_launch", "l", "", "say how the kernel is launched (--no-run)", "live"),
    Key("b", "baseline", "b", "baseline", "compare with what is shown now; again: no more", "live"),
    Key("space", "pause", "space", "pause", "freeze the view; launches go on", "live"),
    Key("s", "sort_next", "s", "sort", "sort the warps by the next column", "live"),
    Key("S", "sort_reverse", "S", "reverse", "reverse the order", "live"),
    Key("slash", "filter", "/", "filter", "show only some rows: sm == 3 and elapsed > p99", "live"),
    Key("f", "freeze", "f", "freeze", "keep the rows in their order while values change", "live"),
    Key("x", "histogram_scale", "x", "", "histogram: linear, log values, log counts", "live"),
    Key("v", "histogram_field", "v", "", "histogram: the next field of the probe", "live"),
    Key("a", "accumulate", "a", "", "histogram: one launch, or all since the reset", "live"),
    Key("t", "timeline", "t", "timeline", "blocks over time in place of the occupancy", "live"),
    Key("plus,minus", "", "+/-/0", "", "timeline: zoom in, out, back to the whole", "live"),
    Key("e", "", "e", "", "timeline: show the lanes of every SM", "live"),
    Key("m", "maximise", "m", "maximise", "give the focused pane the screen; again: back", "live"),
    Key("h", "hide", "h", "", "hide the focused pane", "live"),
    Key("H", "unhide", "H", "", "show all hidden panes again", "live"),
    Key("p", "below('source')", "p", "", "source and PTX in place of the table", "live"),
    Key("n,N", "", "n/N", "", "source: the next line, or the one before, with a probe", "live"),
    Key("g", "below('log')", "g", "", "what compiler, weaver and device said", "live"),
    Key("w", "record", "w", "", "write ten launches to a trace folder", "live"),
    Key("r", "reset", "r", "reset", "forget the averages and counts", "live"),
    Key("ctrl+r", "restart", "ctrl+r", "restart", "start a fresh worker", "live"),
    Key("ctrl+r", "restart", "ctrl+r", "try again", "start a fresh worker", "start"),
    Key("tab,shift+tab", "", "tab", "", "go to the next pane", "live"),
    Key("up,down", "", "up/down", "", "select a warp; the selection follows that warp", "live"),
    Key("pageup,pagedown,home,end", "", "page/home/end", "", "move through the warps", "live"),
    Key("left,right", "", "left/right", "", "scroll a table wider than its pane", "live"),
    Key("enter", "", "enter", "", "filter the table by the SM, block or bucket chosen", "live"),
    Key("escape", "unselect", "esc", "", "drop the selection, the filter, maximise", "live"),
    Key("space", "play", "space", "play/stop", "play the recorded launches, or stop", "replay"),
    Key("comma", "move(-1)", ",", "back", "the launch before", "replay"),
    Key("full_stop", "move(1)", ".", "on", "the launch behind", "replay"),
    Key("less_than_sign", "move(-10)", "<", "", "ten launches back", "replay"),
    Key("greater_than_sign", "move(10)", ">", "", "ten launches further", "replay"),
    Key("left_square_bracket", "faster(-1)", "[", "slower", "play more slowly", "replay"),
    Key("right_square_bracket", "faster(1)", "]", "faster", "play faster", "replay"),
    Key("c", "shot", "c", "", "save the screen as an SVG picture", "everywhere"),
    Key("ctrl+p", "command_palette", "ctrl+p", "", "find any action by its name", "everywhere"),
    Key("question_mark", "help", "?", "help", "show this help", "everywhere"),
    Key("q", "finish", "q", "quit", "quit", "everywhere"),
    Key("ctrl+c", "finish", "ctrl+c", "", "quit", "everywhere", priority=True),
    Key("ctrl+z", "suspend_process", "ctrl+z", "", "suspend; `fg` brings it back", "everywhere"),
)


def bindings(where: Where) -> list[BindingType]:
    """The bindings of one part of the program."""
    return [
        Binding(key.keys, key.action, key.help, show=False, priority=key.priority)
        for key in KEYS
        if key.where == where and key.action
    ]


def commands(where: Where) -> list[tuple[str, str, str]]:
    """(key, what it does, action) for the command palette."""
    return [(key.shown, key.help, key.action) for key in _keys(where) if key.action and key.help]


def footer(where: Where) -> list[tuple[str, str, str]]:
    """(key, label, action) for the footer, in order of use."""
    return [(key.shown, key.label, key.action) for key in _keys(where) if key.label]


def help_lines(where: Where) -> list[tuple[str, str]]:
    """(key, what it does), once for each."""
    return [(key.shown, key.help) for key in _keys(where) if key.help]


def _keys(where: Where) -> list[Key]:
    own = [key for key in KEYS if key.where == where]
    if where == "replay":
        taken = {key.keys for key in own}
        own += [key for key in KEYS if key.where == "live" and key.keys not in taken]
    return own + [key for key in KEYS if key.where == "everywhere"]
