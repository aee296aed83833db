"""Every key, once: bindings, footer and help are made from these tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.keys import Keys, format_key

Where = Literal["everywhere", "live", "replay", "start", "program", "attached"]
"""`program` is the list of the kernels that a running program launches, `attached` the live screen
of one of them. That and a replay have the live actions too, but those whose usual keys they need
for their own, and those of `_WITHOUT`."""


@dataclass(frozen=True, slots=True)
class Key:
    """`keys` as Textual names them; a reader sees `shown`, if given, in their place. An empty
    `label` keeps it out of the footer; an empty `action` is a key that the focused widget handles
    itself. What has an `id` can be given other keys by the user."""

    id: str
    keys: str
    action: str
    label: str
    help: str
    priority: bool = False
    shown: str = ""
    sources: Literal["", "one", "several"] = ""
    """With how many sources it counts, "" for any."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.keys.split(","))

    @property
    def text(self) -> str:
        return self.shown or "/".join(map(key_text, self.names))


_START = (
    Key("start", "enter", "start", "start", "start watching", priority=True),
    Key("", "tab", "app.focus_next", "other list", "go to the other list"),
    Key("", "up,down", "", "choose", "choose a kernel or a probe"),
    Key("restart", "ctrl+r", "restart", "try again", "start a fresh worker"),
)
_LIVE = (
    Key("", "1", "probe(1)", "probe", "switch the probe; the kernel keeps running", shown="1-9"),
    *(Key("", str(n), f"probe({n})", "", "") for n in range(2, 10)),
    Key("kernel", "k", "pick_kernel", "kernel", "choose another kernel of the file"),
    Key("next-source", "o", "other_source", "", "the next source; the former becomes the baseline"),
    Key(
        "",
        "tab",
        "source_or_pane",
        "source",
        "the next of several sources, as o does",
        sources="several",
    ),
    Key("launch", "l", "edit_launch", "", "say how the kernel is launched (--no-run)"),
    Key("baseline", "b", "baseline", "baseline", "compare with what is shown now; again: no more"),
    Key("pause", "space", "pause", "pause", "freeze the view; launches go on"),
    Key("sort", "s", "sort_next", "sort", "sort the warps by the next column"),
    Key("reverse", "S", "sort_reverse", "reverse", "reverse the order"),
    Key("filter", "slash", "filter", "filter", "show only some rows: sm == 3 and elapsed > p99"),
    Key("freeze", "f", "freeze", "freeze", "keep the rows in their order while values change"),
    Key("scale", "x", "histogram_scale", "", "histogram: linear, log values, log counts"),
    Key("field", "v", "histogram_field", "", "histogram: the next field of the probe"),
    Key("accumulate", "a", "accumulate", "", "histogram: one launch, or all seen since the reset"),
    Key("timeline", "t", "timeline", "timeline", "blocks over time in place of the occupancy"),
    Key(
        "",
        "plus,equals_sign,minus,0",
        "",
        "",
        "timeline: zoom in, out, back to the whole",
        shown="+/-/0",
    ),
    Key("", "e", "", "", "timeline: show the lanes of every SM"),
    Key("maximise", "m", "maximise", "maximise", "give the focused pane the screen; again: back"),
    Key("hide", "h", "hide", "", "hide the focused pane"),
    Key("unhide", "H", "unhide", "", "show all hidden panes again"),
    Key("source", "p", "below('source')", "", "source and PTX in place of the table"),
    Key("", "n,N", "", "", "source: the next line, or the one before, with a probe"),
    Key("log", "g", "below('log')", "", "what compiler, weaver and device said"),
    Key("record", "w", "record", "", "write ten launches to a trace folder"),
    Key("reset", "r", "reset", "reset", "forget the averages and counts"),
    Key("restart", "ctrl+r", "restart", "restart", "start a fresh worker"),
    Key("", "tab,shift+tab", "", "", "go to the next pane", shown="tab", sources="one"),
    Key("", "shift+tab", "", "", "go to another pane, while tab is for sources", sources="several"),
    Key("", "up,down", "", "", "select a warp; the selection follows that warp"),
    Key("", "pageup,pagedown,home,end", "", "", "move through the warps", shown="page/home/end"),
    Key("", "left,right", "", "", "scroll a table wider than its pane"),
    Key("", "enter", "", "", "filter the table by the SM, block or bucket chosen"),
    Key("unselect", "escape", "unselect", "", "drop the selection, the filter, maximise"),
)
_REPLAY = (
    Key("play", "space", "play", "play/stop", "play the recorded launches, or stop"),
    Key("back", "comma", "move(-1)", "back", "the launch before"),
    Key("on", "full_stop", "move(1)", "on", "the launch behind"),
    Key("back-ten", "less_than_sign", "move(-10)", "", "ten launches back"),
    Key("on-ten", "greater_than_sign", "move(10)", "", "ten launches further"),
    Key("slower", "left_square_bracket", "faster(-1)", "slower", "play more slowly"),
    Key("faster", "right_square_bracket", "faster(1)", "faster", "play faster"),
)
_DETACH = Key("detach", "d", "detach", "detach", "take the probe off; the program runs on without")
_PROGRAM = (
    Key("watch", "enter", "watch", "attach", "attach the probe to the kernel and watch it"),
    Key("", "1", "probe(1)", "probe", "choose the probe to attach", shown="1-9"),
    *(Key("", str(n), f"probe({n})", "", "") for n in range(2, 10)),
    _DETACH,
    Key("filter", "slash", "filter", "filter", "show only kernels with these words in their names"),
    Key("sort", "s", "sort_next", "sort", "sort the kernels by the next column"),
    Key("reverse", "S", "sort_reverse", "reverse", "reverse the order"),
    Key("", "up,down", "", "", "choose a kernel; the cursor follows that kernel"),
    Key("", "pageup,pagedown,home,end", "", "", "move through the kernels", shown="page/home/end"),
    Key("unselect", "escape", "unselect", "", "let the cursor go back up; then drop the filter"),
)
_ATTACHED = (
    Key("kernel", "k", "to_list", "kernels", "back to the list; the probe stays attached"),
    _DETACH,
    Key("restart", "ctrl+r", "restart", "", "attach the probe once more"),
)
_EVERYWHERE = (
    Key("picture", "c", "shot", "", "save the screen as an SVG picture"),
    Key("palette", "ctrl+p", "command_palette", "", "find any action by its name"),
    Key("help", "question_mark", "help", "help", "show this help"),
    Key("quit", "q", "finish", "quit", "quit"),
    Key("", "ctrl+c,ctrl+q", "finish", "", "quit", priority=True),
    Key("suspend", "ctrl+z", "suspend_process", "", "suspend; `fg` brings it back"),
)
KEYS: Mapping[Where, tuple[Key, ...]] = {
    "start": _START,
    "live": _LIVE,
    "replay": _REPLAY,
    "program": _PROGRAM,
    "attached": _ATTACHED,
    "everywhere": _EVERYWHERE,
}
_WITHOUT: Mapping[Where, frozenset[str]] = {
    "replay": frozenset(),
    "attached": frozenset({"launch", "next-source"}),
}
"""Where the live actions count too, and which of them have no meaning there."""


def bindings(where: Where) -> list[BindingType]:
    """The bindings of one part of the program."""
    return [
        Binding(key.keys, key.action, key.help, show=False, priority=key.priority, id=key.id)
        for key in KEYS[where]
        if key.action
    ]


def key_text(name: str) -> str:
    """How a reader knows the key that Textual calls `name`."""
    *modifiers, last = name.split("+")
    text = format_key(last)
    return "+".join([*modifiers, text if text.isascii() else last])


def normal_name(key: str) -> str:
    """Textual's name of the key that the user calls `key`, a name or a character; "" for what
    no key is called."""
    (binding,) = Binding.make_bindings([Binding(key, "")])
    *modifiers, last = binding.key.split("+")
    named = last in {one.value for one in Keys}
    modifying = {"ctrl", "alt", "shift"} if named else {"ctrl", "alt"}
    known = named or len(format_key(last)) == 1
    return binding.key if known and modifying.issuperset(modifiers) else ""


@dataclass(frozen=True, slots=True)
class Clash:
    """Two actions that one key stands for. The user has moved at least the first."""

    key: str
    moved: Key
    other: Key


class Keymap:
    """The tables with the user's own keys in them: `changed` gives the keys of some ids, `several`
    says whether there are several sources."""

    def __init__(self, changed: Mapping[str, str] | None = None, *, several: bool = False) -> None:
        self.changed = dict(changed or {})
        self.several = several
        self.table = {where: tuple(map(self._mapped, keys)) for where, keys in KEYS.items()}

    def _mapped(self, key: Key) -> Key:
        wanted = self.changed.get(key.id)
        return key if wanted is None else replace(key, keys=wanted, shown="")

    def rebind(self, node: DOMNode) -> None:
        """Gives the bindings of `node` that have ids their keys. (`App.set_keymap` would do so
        at each key press, after the keys that a focused Input takes are gone.)"""
        if self.changed:
            node._bindings.apply_keymap(
                {key.id: key.keys for keys in self.table.values() for key in keys if key.id}
            )

    def clashes(self) -> Iterator[Clash]:
        """Keys that would do two things at once."""
        for where in KEYS:
            for one, other in combinations(self.of(where), 2):
                if one.action != other.action:
                    moved, still = (one, other) if one.id in self.changed else (other, one)
                    shared = set(one.names) & set(other.names)
                    yield from (Clash(name, moved, still) for name in sorted(shared))

    def text(self, id: str) -> str:  # noqa: A002 - as Binding has it
        """The keys of an action, as a reader knows them."""
        return next(key.text for keys in self.table.values() for key in keys if key.id == id)

    def commands(self, where: Where) -> list[Key]:
        """For the command palette: what the help tells, without a second key of the same."""
        seen: set[tuple[str, str]] = set()
        found = []
        for key in self.help_keys(where):
            if (key.help, key.action) not in seen:
                seen.add((key.help, key.action))
                found.append(key)
        return found

    def footer(self, where: Where) -> list[tuple[str, str, str]]:
        """(key, label, action) for the footer, in order of use."""
        return [(key.text, key.label, key.action) for key in self.of(where) if key.label]

    def help_keys(self, where: Where) -> list[Key]:
        """What the help tells, each once."""
        return [key for key in self.of(where) if key.help]

    def of(self, where: Where) -> list[Key]:
        """All that count in one part of the program."""
        sources = ("", "several" if self.several else "one")
        keys = list(self.table[where])
        if where in _WITHOUT:
            live = zip(KEYS["live"], self.table["live"], strict=True)
            keys += [key for usual, key in live if not _dropped(usual, where)]
        if where != "everywhere":
            keys += self.table["everywhere"]
        return [key for key in keys if key.sources in sources]


def without(where: Where) -> frozenset[str]:
    """Actions of the live screen that have no key where only some of them count."""
    own = {key.action for key in KEYS[where]}
    return frozenset(key.action for key in KEYS["live"] if _dropped(key, where)) - own


def _dropped(key: Key, where: Where) -> bool:
    taken = {own.keys for own in KEYS[where]}
    return key.keys in taken or key.id in _WITHOUT[where]
