"""The TOML form of a probe program: PTX texts before and after a position."""

from __future__ import annotations

from typing import cast

from gpuwatch.probe.language import LEVELS, MAX_REGISTERS, REDUCTIONS, TYPES, near
from gpuwatch.probe.model import Action, Field, Map, Probe, ProbeRegister, Program
from gpuwatch.probe.reading import (
    Given,
    SourceText,
    mistake,
    read_map,
    read_sample,
    whole,
    with_samples,
    word,
)
from gpuwatch.probe.toml_body import declare, read_body
from gpuwatch.probe.toml_places import Places, Table, read_document

_TOP = (
    "regs", "register", "CALLBACK", "callback", "title", "author", "description", "probe", "map",
)  # fmt: skip
_PROBE = ("level", "pos", "position", "before", "after", "sample", "sample_unit")
_MAP = ("level", "type", "size", "cap", "scale", "low", "step", "regs")


def parse_toml(text: str, source: str) -> Program:
    """Reads a TOML probe file; `source` is its name. Raises UserError with the place.

    `[probe.X]` with both `before` and `after` gives two probes named X, which share registers.
    """
    read_from = SourceText.of(source, text.replace("\r\n", "\n"))  # as TOML values have them
    return _FileReader(read_from, read_document(read_from)).program()


class _FileReader:
    def __init__(self, source: SourceText, document: Table) -> None:
        self._source = source
        self._places = Places(source)
        self._document = document

    def program(self) -> Program:
        self._known(self._document, _TOP, ())
        maps = [self._map(name) for name in self._table("map")]
        probes = [probe for name in self._table("probe") for probe in self._probes(name)]
        title = self._text(self._document, "title", "description").strip().split("\n")[0]
        self._text(self._document, "author")
        return with_samples(
            Program(
                name=self._source.name,
                title=title or self._source.leading_comment(),
                maps=tuple(maps),
                registers=self._registers(),
                probes=tuple(probes),
                source=self._source.file,
                form="toml",
                callback=self._text(self._document, "CALLBACK", "callback"),
            )
        )

    def _known(self, table: Table, known: tuple[str, ...], path: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                raise mistake(f"unknown key {key}", self._places.at(*path, key), near(key, known))

    def _table(self, *path: str) -> Table:
        found: object = self._document
        for key in path:
            found = cast(Table, found).get(key, {})
            if not isinstance(found, dict):
                hint = f"write [{'.'.join(path)}...] and keys below it"
                raise mistake(f"{key} must be a table", self._places.at(*path), hint)
        return cast(Table, found)

    def _spelled(self, table: Table, path: tuple[str, ...], *names: str) -> str | None:
        """Which of several spellings of a key is there; two are an error."""
        found = [name for name in names if name in table]
        if len(found) > 1:
            raise mistake(
                f"{found[0]} and {found[1]} mean the same",
                self._places.at(*path, found[1]),
                "keep one of them",
            )
        return found[0] if found else None

    def _text(self, table: Table, *names: str, path: tuple[str, ...] = ()) -> str:
        name = self._spelled(table, path, *names)
        if name is None:
            return ""
        value = table[name]
        if not isinstance(value, str):
            raise mistake(
                f"{name} must be text", self._places.at(*path, name), f'write {name} = "..."'
            )
        return value

    def _registers(self) -> tuple[ProbeRegister, ...]:
        name = self._spelled(self._document, (), "regs", "register")
        if name is None:
            return ()
        at = self._places.at(name)
        count = whole(self._document[name], name, at)
        if count > MAX_REGISTERS:
            raise mistake(f"{count} registers are too many", at, f"use at most {MAX_REGISTERS}")
        return tuple([ProbeRegister(f"%NR{number}", "u64") for number in range(count)])

    def _map(self, name: str) -> Map:
        path = ("map", name)
        table = self._table(*path)
        self._known(table, _MAP, path)
        at = self._places.at(*path)
        if "level" not in table:
            raise mistake(f"map {name} has no level", at, 'write level = "warp"')
        fields = tuple(
            [self._field(path, key, given) for key, given in self._table(*path, "regs").items()]
        )
        level = word(table["level"], LEVELS, "level", self._places.at(*path, "level"))
        return read_map(name, level, fields, self._given(table, path), at)

    def _given(self, table: Table, path: tuple[str, ...]) -> Given:
        return Given(table, lambda name: self._places.at(*path, name))

    def _field(self, path: tuple[str, ...], name: str, given: object) -> Field:
        at = self._places.at(*path, "regs", name)
        type_, *others = given if isinstance(given, list) and given else [given]
        if len(others) > 1:
            hint = f'write {name} = ["u64", "None"] or ["u64", "sum"]'
            raise mistake(f"field {name} has more than two parts", at, hint)
        reductions = {"None": REDUCTIONS["sum"], **REDUCTIONS}
        reduction = word(others[0] if others else "None", reductions, "second part of a field", at)
        return Field(name, word(type_, TYPES, "type of a field", at), reduction)

    def _probes(self, name: str) -> list[Probe]:
        path = ("probe", name)
        table = self._table(*path)
        self._known(table, _PROBE, path)
        position = self._text(table, "pos", "position", path=path)
        at = self._places.at(*path)
        for missing, hint in (
            (not position, 'write pos = "kernel"'),
            ("level" not in table, 'write level = "warp"'),
            ("before" not in table and "after" not in table, "give it a before or an after text"),
        ):
            if missing:
                raise mistake(f"probe {name} is not complete", at, hint)
        level = word(table["level"], LEVELS, "level", self._places.at(*path, "level"))
        sample, unit = read_sample(self._given(table, path))
        declared: dict[str, tuple[str, int]] = {}
        probes = []
        for half in ("before", "after"):
            if half in table:
                body = self._body(path, half, declared)
                before = half == "before"
                probes.append(Probe(name, position, level, before, body, at, sample, unit))
        return probes

    def _body(
        self, path: tuple[str, ...], half: str, declared: dict[str, tuple[str, int]]
    ) -> tuple[Action, ...]:
        """The actions of one text; what it declares and `declared` lacks is added to both."""
        text = self._text(self._table(*path), half, path=path)
        place = self._places.of(*path, half)
        body, declarations = read_body(self._source, text, place.start, place.end)
        fresh = []
        for type_, name, count in declarations:
            if name not in declared:
                declared[name] = (type_, count)
                fresh.append((type_, name, count))
            elif declared[name] != (type_, count):
                raise mistake(
                    f"{name} is declared twice, in different ways",
                    self._places.at(*path, half),
                    "rename one of them",
                )
        return declare(body, tuple(fresh), self._places.at(*path, half))
