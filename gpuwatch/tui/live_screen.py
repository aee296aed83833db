"""The live screen: pulls frames on a timer and hands one View to all panes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from gpuwatch.analysis.filtering import Filter
from gpuwatch.engine.frame import Frame, Status
from gpuwatch.errors import UserError
from gpuwatch.tui import layout
from gpuwatch.tui.bars import Footer, Header, StatusLine
from gpuwatch.tui.choosing import ChoosingScreen
from gpuwatch.tui.comparison import Baseline, with_delta
from gpuwatch.tui.filter_bar import FilterBar
from gpuwatch.tui.histogram_pane import HistogramPane
from gpuwatch.tui.keymap import Where, bindings
from gpuwatch.tui.kiosk import Caption, Tour
from gpuwatch.tui.layout import Content, Wish
from gpuwatch.tui.log_pane import LogPane
from gpuwatch.tui.maps_pane import MapsPane, shown_maps
from gpuwatch.tui.occupancy_pane import OccupancyPane
from gpuwatch.tui.pane import Narrow, View
from gpuwatch.tui.record_table import RecordTable, table_of
from gpuwatch.tui.source_pane import SourcePane
from gpuwatch.tui.start_screen import error_text
from gpuwatch.tui.timeline_pane import TimelinePane
from gpuwatch.tui.warp_pane import WarpPane

RECORDED = 10
"""Launches that the key for recording writes."""


class LiveScreen(ChoosingScreen):
    """All panes, each with the same View of the moment."""

    BINDINGS = bindings("live")
    where: ClassVar[Where] = "live"
    DEFAULT_CSS = """
    LiveScreen #upper { height: 4fr; min-height: 7; }
    LiveScreen.low #upper { height: 10fr; }
    LiveScreen #occupancy, LiveScreen #timeline { width: 3fr; margin-right: 1; }
    LiveScreen .off { display: none; }
    LiveScreen #histogram { width: 2fr; }
    LiveScreen #banner {
        display: none; height: auto; max-height: 40%; padding: 0 1; border-left: thick $error;
        background: $panel;
    }
    LiveScreen.failed #banner { display: block; }
    LiveScreen.failed #upper { min-height: 2; }
    LiveScreen #banner Static { height: auto; }
    LiveScreen #lower { height: 3fr; }
    LiveScreen.low #lower { height: 9fr; }
    LiveScreen #warps { width: 3fr; }
    LiveScreen #maps { width: 2fr; margin-left: 1; }
    LiveScreen.lone #upper > *, LiveScreen.lone #maps { margin: 0; }
    LiveScreen.narrow.untimed #lower { layout: vertical; }
    LiveScreen.narrow.untimed #lower > * { width: 1fr; margin: 0; }
    """

    def __init__(self, kernel: str | None, probe: str | None) -> None:
        super().__init__(kernel, probe)
        self._table: RecordTable | None = None
        self._newest: Frame | None = None
        self._newest_table: RecordTable | None = None
        self._baseline: Baseline | None = None
        self._error: UserError | None = None
        self._tick = 0
        self._shown: tuple[object, ...] = ()
        self._content = Content()
        self._wish = Wish()
        self._extent = (120, 40)
        self._placed: tuple[object, ...] = ()

    def parts(self) -> Iterable[Widget]:
        yield Header(self.glyphs)
        if self.gpuwatch.kiosk is not None:
            yield Caption(self.glyphs, Tour(self.gpuwatch.kiosk))
        with VerticalScroll(id="banner", can_focus=False):
            yield Static(id="banner-text")
        with Horizontal(id="upper"):
            yield OccupancyPane(self.glyphs, "occupancy")
            yield TimelinePane(self.glyphs, "timeline")
            yield HistogramPane(self.glyphs, "histogram")
        with Horizontal(id="lower"):
            yield WarpPane(self.glyphs, "warps")
            yield MapsPane(self.glyphs, "maps")
            yield SourcePane(self.glyphs, "source")
            yield LogPane(self.glyphs, "log")
        yield FilterBar(self.glyphs, "filter")
        yield StatusLine(self.glyphs)
        yield Footer(self.glyphs, self.where)

    def on_mount(self) -> None:
        warps = self.query_one(WarpPane)
        warps.focus()
        before = self.gpuwatch.remembered
        self._rows = warps.rows
        self._rows.sort, self._rows.descending = before.sort, before.descending
        self._wish = layout.wish_of(before)
        self.pull()
        self.set_interval(1 / self.gpuwatch.rate_hz, self.pull)

    def on_unmount(self) -> None:
        sort, descending = self._rows.sort, self._rows.descending
        self.gpuwatch.remembered = layout.remembered(self._wish, sort, descending)

    def lay_out(self, width: int, height: int) -> None:
        self._extent = (width, height)
        self._place()

    def _place(self) -> None:
        """Shows the panes that the size, the probe and the user's wishes leave."""
        width, height = self._extent
        visible = layout.shown(self._content, self._wish, width, height)
        state = (visible, width < layout.NARROW, height < layout.LOW)
        if state == self._placed:
            return
        self._placed = state
        self.set_class(state[1], "narrow")
        self.set_class(state[2], "low")
        self.set_class(not self._content.timed, "untimed")
        self.set_class(len(visible) == 1, "lone")
        for pane in layout.PANES:
            self.query_one(f"#{pane}").set_class(pane not in visible, "off")
        for row, panes in (("#upper", layout.UPPER), ("#lower", layout.LOWER)):
            self.query_one(row).set_class(visible.isdisjoint(panes), "off")
        if self.focused is not None and self.focused.id in set(layout.PANES) - visible:
            order = ("warps", *layout.PANES)
            self.query_one(f"#{next(pane for pane in order if pane in visible)}").focus()

    # ---- pulling

    def pull(self) -> None:
        """Takes the newest frame and status, and redraws what they change."""
        watch = self.gpuwatch.feed
        newest, status = watch.latest(), self._status()
        self._observe(newest)
        if newest is not None and (not self._paused or self._frame is None):
            self._take(newest, self._newest_table)
        self._tick += 1
        self._show_banner(status)
        warps = self.query_one(WarpPane)
        waiting = self._waiting()
        now = newest.launches if newest is not None else 0
        state = (
            self._frame, self._baseline, status, waiting, self._paused, now, warps.warp,
            warps.filter_text, watch.listing(), len(watch.log()), self._refused,
        )  # fmt: skip
        if state != self._shown:
            self._shown = state
            self._show(self._view(status, bool(waiting), now))
        notes = self._frame.notes if self._frame is not None else ()
        self.query_one(StatusLine).show(status, notes, waiting, self._tick, self._at_rest())
        self.query_one(Footer).show(self._paused)
        for caption in self.query(Caption):
            caption.advance(self._stop, arrived=self._frame is not None and not waiting)

    def _status(self) -> Status:
        return self.gpuwatch.feed.status()

    def _at_rest(self) -> str:
        """What the last line but one says where there is nothing else to say."""
        return "running"

    def _observe(self, newest: Frame | None) -> None:
        """Counts every launch that comes, once, whether or not it is shown."""
        if newest is not None and newest is not self._newest:
            self._newest, self._newest_table = newest, table_of(newest)
            self.query_one(HistogramPane).observe(newest, self._newest_table)

    def _take(self, frame: Frame, table: RecordTable | None) -> None:
        """Shows a frame. Of another build than the last frame's, the last becomes the baseline."""
        if frame is self._frame:
            return
        if self._frame is not None and frame.build != self._frame.build:
            former = self._baseline
            pinned = former is not None and former.pinned_in(self._frame.build)
            self._baseline = Baseline.of(self._frame, pinned=pinned)
            self._followed(frame)
        self._frame = frame
        self._table = with_delta(table, self._baseline)

    def _view(self, status: Status, waiting: bool, now: int) -> View:
        watch, frame = self.gpuwatch.feed, self._frame
        warps = self.query_one(WarpPane)
        return View(
            source=((frame and frame.source) or watch.source()).rsplit("/", 1)[-1],
            frame=frame,
            status=status,
            probe=self._probe or (frame.probe if frame is not None else ""),
            kernel=frame.kernel if frame is not None else self._kernel_name(),
            probes=tuple(watch.probes()),
            stale=waiting or status.state in ("failed", "stopped"),
            paused=self._paused,
            launches_now=now,
            table=self._table,
            selected=None if self._table is None else self._table.row_of(warps.warp),
            filter=warps.filter_text,
            tick=self._tick,
            baseline=self._baseline,
            listing=watch.listing(),
            log=watch.log(),
            refused=self._refused,
        )

    def _show(self, view: View) -> None:
        frame = view.frame
        untimed = frame is not None and frame.warps_table is None and bool(frame.maps)
        self._content = Content(
            timed=not untimed,
            table=not untimed or view.table is not None,
            maps=bool(shown_maps(frame)),
        )
        self._place()
        self.query_one(MapsPane).show(view)
        self.query_one(Header).show(view)
        for caption in self.query(Caption):
            caption.show(view)
        warps = self.query_one(WarpPane)
        warps.show(view)
        self.query_one(FilterBar).tell(warps.count_text)
        self.query_one(OccupancyPane).show(view)
        self.query_one(TimelinePane).show(view)
        for pane in (self.query_one(SourcePane), self.query_one(LogPane)):
            if pane.display:
                pane.show(view)
        self.query_one(HistogramPane).show(view)

    def _show_banner(self, status: Status) -> None:
        """Shows what is wrong: the worker's failure, or what a saved source lacks."""
        bad = status.error
        if bad is None and status.state in ("failed", "stopped"):
            bad = UserError(status.detail or f"the worker has {status.state}")
        if bad is self._error or (bad is not None and bad.render() == _words(self._error)):
            return
        self._error = bad
        self.set_class(bad is not None, "failed")
        if bad is not None:
            text = error_text(bad, self._way_out(bad, status))
            self.query_one("#banner-text", Static).update(text)

    def _way_out(self, bad: UserError, status: Status) -> str:
        """What the user can do about what is wrong."""
        if status.state == "running":
            return "the former build runs on; saving the file compiles it again"
        keys = self.gpuwatch.keymap
        closing = f"{keys.text('restart')} restarts the worker, {keys.text('quit')} quits"
        return f"saving the file tries again, {closing}" if self._tries_again(bad) else closing

    def _tries_again(self, bad: UserError) -> bool:
        """Whether the worker is there to see the next save."""
        ready = self.where == "live" and self.gpuwatch.feed.device() is not None
        return bad.at is not None or (ready and not bad.fatal)

    # ---- keys

    def action_pause(self) -> None:
        self._paused = not self._paused
        self.pull()

    def action_baseline(self) -> None:
        """Pins what is shown as the baseline, or drops the one there is."""
        if self._baseline is not None:
            self._baseline = None
        elif self._frame is not None:
            self._baseline = Baseline.of(self._frame, pinned=True)
        self._table = with_delta(table_of(self._frame), self._baseline)
        self.pull()

    def action_sort_next(self) -> None:
        self.query_one(WarpPane).sort_next()

    def action_sort_reverse(self) -> None:
        self.query_one(WarpPane).sort_reverse()

    def action_maximise(self) -> None:
        """Gives the focused pane all the room, or takes it back."""
        wanted = self.focused.id if self.focused is not None else None
        pane = wanted if self._wish.maximised is None and wanted in layout.PANES else None
        self._wish = replace(self._wish, maximised=pane)
        self._place()

    def action_hide(self) -> None:
        """Takes the focused pane off the screen."""
        wanted = self.focused.id if self.focused is not None else None
        if wanted in layout.PANES:
            hidden = self._wish.hidden | {wanted}
            if layout.available(self._content, self._wish) <= hidden:
                self.notify("the last pane stays")
                return
            self._wish = replace(self._wish, hidden=hidden, maximised=None)
            self._place()

    def action_below(self, pane: str) -> None:
        """Swaps the source or the log in for the table, and back."""
        below = "" if self._wish.below == pane else pane
        hidden = self._wish.hidden - {pane}
        self._wish = replace(self._wish, below=below, hidden=hidden, maximised=None)
        self._place()
        self.query_one(f"#{below or 'warps'}").focus()
        self._shown = ()
        self.pull()

    def action_timeline(self) -> None:
        """Swaps the timeline in for the occupancy, and back."""
        focused = self.focused.id if self.focused is not None else None
        wish = replace(self._wish, timeline=not self._wish.timeline)
        one, other = ("occupancy", "timeline") if wish.timeline else ("timeline", "occupancy")
        if wish.maximised == one:
            wish = replace(wish, maximised=other)
        self._wish = replace(wish, hidden=wish.hidden - {other})
        self._place()
        if focused == one:
            self.query_one(f"#{other}").focus()

    def action_unhide(self) -> None:
        """Brings all hidden panes back."""
        self._wish = replace(self._wish, hidden=frozenset())
        self._place()

    def action_unselect(self) -> None:
        """Drops the selection; with none, the filter; then leaves the maximised pane."""
        warps = self.query_one(WarpPane)
        if warps.unselect():
            return
        if warps.filter_text:
            warps.filter_by(None)
            self.pull()
            return
        self._wish = replace(self._wish, maximised=None)
        self._place()

    def action_record(self) -> None:
        folder = self.gpuwatch.feed.record(RECORDED)
        if folder:
            key = self.gpuwatch.keymap.text("log")
            self.notify(f"{RECORDED} launches to {folder}; {key} shows the log", title="recording")
        else:
            self.notify("this is a recording already")

    def action_reset(self) -> None:
        self.gpuwatch.feed.reset()
        self.query_one(HistogramPane).forget()

    def action_restart(self) -> None:
        self._paused = False
        self.gpuwatch.feed.restart()

    def on_warp_pane_chosen(self) -> None:
        self.pull()

    # ---- filter

    def action_filter(self) -> None:
        """Opens the line in which the table's filter is written."""
        if self._table is not None:
            text = self.query_one(WarpPane).filter_text
            self.query_one(FilterBar).open(tuple(self._table.by_lower_name()), text)

    def on_filter_bar_changed(self, message: FilterBar.Changed) -> None:
        warps = self.query_one(WarpPane)
        warps.filter_by(message.wanted)
        self.pull()

    def on_filter_bar_closed(self) -> None:
        self.query_one(WarpPane).focus()

    def on_narrow(self, message: Narrow) -> None:
        """Filters by what was chosen in another pane; the same choice once more shows all."""
        warps = self.query_one(WarpPane)
        if self._table is None or message.condition == warps.filter_text:
            warps.filter_by(None)
        else:
            warps.filter_by(Filter.of(message.condition, tuple(self._table.by_lower_name())))
        self.pull()

    def action_histogram_scale(self) -> None:
        self.query_one(HistogramPane).next_scale()

    def action_histogram_field(self) -> None:
        self.query_one(HistogramPane).next_field()

    def action_accumulate(self) -> None:
        self.query_one(HistogramPane).toggle_accumulated()

    def action_freeze(self) -> None:
        self.query_one(WarpPane).toggle_frozen()

    def on_footer_pressed(self, message: Footer.Pressed) -> None:
        self.gpuwatch.press(message.action)


def _words(error: UserError | None) -> str:
    return "" if error is None else error.render()
