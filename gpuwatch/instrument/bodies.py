"""Weaving of one function's body: the kernel's own, or that of a function that it calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpuwatch.instrument import exits, flushing
from gpuwatch.instrument.code import Code, Temporaries
from gpuwatch.instrument.edits import Edits
from gpuwatch.instrument.gather import Gathering
from gpuwatch.instrument.known import fold
from gpuwatch.instrument.positions import Found
from gpuwatch.instrument.registers import Declared
from gpuwatch.instrument.scene import Scene, Shared
from gpuwatch.instrument.sites import Sites, Stop, Where
from gpuwatch.instrument.source_lines import SourceLines, instruction_lines
from gpuwatch.instrument.subject_reader import SubjectReader
from gpuwatch.probe.language import BLOCKS
from gpuwatch.probe.model import Probe
from gpuwatch.ptx import isa
from gpuwatch.ptx.classes import block_mixes
from gpuwatch.ptx.convergence import Departure, Way
from gpuwatch.ptx.model import (
    Directive,
    Function,
    Instruction,
    Label,
    Loc,
    Module,
    RegisterDeclaration,
    Scope,
    Statement,
    Variable,
)

_LEADING = (RegisterDeclaration, Variable, Loc, Directive)
_SEEN = frozenset({RegisterDeclaration, Scope})
ENTRY_EXITS = frozenset({"ret", "exit"})
"""Opcodes at which threads end in a kernel."""
FUNCTION_EXITS = frozenset({"exit"})
"""Opcodes at which they end in a function that it calls."""
_PARTING = isa.ENDS | {"call", "bar", "barrier"}
"""Opcodes behind which other lanes may run together than in front."""
_FLUSH = "\0flush\0"
"""Stands for the code that adds up what was kept in registers."""
_DEPART = "\0depart %d\0"
"""Stands for that of a departure from the blocks of a head, by its number among all."""


class Body:
    """Collects the code of one body, then inserts it in the order of the text."""

    def __init__(
        self,
        module: Module,
        function: Function,
        shared: Shared,
        temporaries: Temporaries,
        sites: Sites,
        file: int,
        strides: Mapping[str, int | None] | None = None,
    ) -> None:
        self._module = module
        self._function = function
        self._statements = function.body or []
        self._shared = shared
        self._temporaries = temporaries
        self._sites = sites
        self._name = "" if function.kind == "entry" else function.name
        self._blocks: list[tuple[int, bool, str]] = []
        self._line = 1
        self._counted = 0
        self._file = file
        self._strides = strides or {}
        self._departures: list[tuple[int, Departure]] = []
        blocks = any(probe.position == BLOCKS for probe in shared.program.probes)
        lines = instruction_lines(self._statements, file) if blocks else {}
        self._mixes = block_mixes(self._statements, lines) if blocks else {}
        self._source = SourceLines(file)
        self.first = next((s for s in self._statements if not isinstance(s, _LEADING)), None)

    def scene(self, probe: Probe, statement: Statement | None) -> Scene:
        """A scene at a statement (None: the body's end) for a probe that is not about it."""
        instruction = statement if isinstance(statement, Instruction) else None
        opcode = ".".join(instruction.tokens) if instruction else ""
        where = self._where(statement)
        number = self._sites.add(probe, opcode, where)
        return Scene(self._shared, probe, number, number, line=where.line)

    def weave(
        self,
        found: Mapping[int, Found],
        ending: Sequence[Probe],
        exiting: frozenset[str],
        *,
        falls: bool,
    ) -> None:
        """Lowers the probes found to have places here (by number), and those behind the kernel
        at each of the opcodes `exiting`; with `falls` at the body's end too."""
        stops = _stops(found)
        declared = Declared()
        reader = SubjectReader(declared, self._strides)
        self._sites.leave_block()
        gathers = falls and self._sites.gathering is not None
        departures = self._departing() if gathers else {}
        starts = self._sites.kept_from_heads() if gathers else {}
        exiting = exiting if ending or gathers else frozenset()
        for index, statement in enumerate(self._statements):
            leaves = False
            if type(statement) is Instruction:
                leaves = statement.tokens[0] in exiting
            elif type(statement) is Loc:
                self._source.see(statement)
            elif type(statement) in _SEEN:
                declared.see(statement)
            elif type(statement) is Label:
                self._sites.leave_block()
            if gathers and index in starts:
                self._begin_block(statement, index, starts[index])
            if leaves or index in stops or index in departures:
                self._at(
                    statement, stops.get(index), reader, ending, leaves, index,
                    departures.get(index, ()),
                )  # fmt: skip
            if type(statement) is Instruction and statement.tokens[0] in _PARTING:
                self._sites.leave_block()
        self._weave_end(stops.get(len(self._statements)), reader, ending, falls, gathers)

    def _begin_block(self, statement: Statement, index: int, keys: frozenset[str]) -> None:
        """A block where what its head found out of the lanes still holds: `keys`. The head itself
        finds it out."""
        if self._sites.is_head(index):
            self._blocks.append((statement.start, False, self._sites.at_head(keys)))
        else:
            self._sites.leave_block(keys)

    def _weave_end(
        self,
        stop: Stop | None,
        reader: SubjectReader,
        ending: Sequence[Probe],
        falls: bool,
        gathers: bool,
    ) -> None:
        """The body's end, and what can be told only when all of it was seen."""
        if stop:
            self._at(None, stop, reader, ending, leaves=False)
        if falls and (ending or gathers) and _falls_through(self._statements):
            self._at(None, None, reader, ending, leaves=True)
        if gathers:
            self._flush()

    def insert(self, edits: Edits, opening: Sequence[str]) -> None:
        """Puts it all into the text, with `opening` in front of the first statement."""
        start = self.first.start if self.first else self._function.body_end
        edits.before(start, fold("\n".join(opening), self._shared.known))
        for offset, behind, block in self._blocks:
            if behind:
                edits.after(offset, block)
            else:
                edits.before(offset, block)

    @property
    def woven(self) -> bool:
        return bool(self._blocks)

    def code(self) -> Code:
        """Code for a new place."""
        self._temporaries.restart()
        return Code(self._shared.names, self._temporaries, self._shared.known)

    def _at(
        self,
        statement: Statement | None,
        stop: Stop | None,
        reader: SubjectReader,
        ending: Sequence[Probe],
        leaves: bool,
        index: int = -1,
        departures: Sequence[tuple[int, Way]] = (),
    ) -> None:
        """In front: the stop's probes, then departures, then the thread's end. Behind: the lanes
        that stay, then the stop's probes and departures."""
        offset = statement.start if statement else self._function.body_end
        instruction = statement if isinstance(statement, Instruction) else None
        before = after = ""
        if stop:
            mix, lines = self._mixes.get(index, ((), ()))
            where = replace(self._where(statement), mix=mix, lines=lines)
            own = -1 if self._name else index
            before, after = self._sites.weave(stop, reader, instruction, where, own)
        self._blocks.append((offset, False, before))
        for number, way in departures:
            if way != Way.BEHIND:
                self._blocks.append((offset, False, _DEPART % number))
        if leaves:
            leaving, staying = self._leave(instruction, ending)
            self._blocks.append((offset, False, leaving))
            if statement:
                self._blocks.append((statement.end, True, staying))
        if statement:
            self._blocks.append((statement.end, True, after))
            for number, way in departures:
                if way == Way.BEHIND:
                    self._blocks.append((statement.end, True, _DEPART % number))

    def _leave(self, instruction: Instruction | None, ending: Sequence[Probe]) -> tuple[str, str]:
        code = self.code()
        guard = instruction.guard if instruction else None
        scenes = [self.scene(probe, instruction) for probe in ending if probe.body]
        scenes += [Scene(self._shared, probe, "") for probe in ending if not probe.body]
        if guard is None:
            self._end(code, scenes)
            return fold("\n".join(code.lines), self._shared.known), ""
        stay = self._shared.names.label()
        code.emit(f"@{'' if guard.negated else '!'}{guard.register} bra \t{stay}")
        self._end(code, scenes)
        return fold("\n".join(code.lines), self._shared.known), f"{stay}:"

    def _end(self, code: Code, scenes: Sequence[Scene]) -> None:
        if self._name == "" and self._sites.gathering is not None:
            code.lines.append(_FLUSH)
        exits.leave(code, scenes, self._shared.buffers.departed)

    def _flush(self) -> None:
        """Puts in what adds up the sums that were kept in registers, now that all are known."""
        gathering = self._sites.gathering
        assert gathering
        marks = {_DEPART % number: one for number, one in enumerate(self._departures)}
        for number, (offset, behind, block) in enumerate(self._blocks):
            if block in marks:
                self._blocks[number] = offset, behind, self._depart(gathering, *marks[block])
            elif _FLUSH in block:
                code = self.code()
                flushing.finish(code, gathering)
                text = fold("\n".join(code.lines), self._shared.known)
                self._blocks[number] = offset, behind, block.replace(_FLUSH, text)

    def _departing(self) -> dict[int, list[tuple[int, Way]]]:
        """By statement the departures at it, each with its number among all."""
        assert self._sites.gathering
        self._departures = list(self._sites.gathering.departures())
        found: dict[int, list[tuple[int, Way]]] = defaultdict(list)
        for number, (_, departure) in enumerate(self._departures):
            found[departure.statement].append((number, departure.way))
        return found

    def _depart(self, gathering: Gathering, head: int, departure: Departure) -> str:
        code = self.code()
        flushing.depart(code, gathering, head)
        lines = code.lines
        statement = self._statements[departure.statement]
        if lines and departure.way == Way.TAKEN:
            assert isinstance(statement, Instruction) and statement.guard
            inverse = "" if statement.guard.negated else "!"
            stay = self._shared.names.label()
            lines = [f"\t@{inverse}{statement.guard.register} bra \t{stay};", *lines, f"{stay}:"]
        return fold("\n".join(lines), self._shared.known)

    def _where(self, statement: Statement | None) -> Where:
        line = self._line_of(statement.start if statement else self._function.body_end)
        lines = self._source.lines
        if lines or not isinstance(statement, Instruction):
            return Where(line, lines[0] if lines else 0, "", self._name)
        own = statement.file == self._file
        file = "" if own else self._module.files.get(statement.file, "")
        return Where(line, statement.line, file, self._name)

    def _line_of(self, offset: int) -> int:
        """The line that an offset is on; offsets come in order but for the first statement's."""
        if offset < self._counted:
            return self._module.text.count("\n", 0, offset) + 1
        self._line += self._module.text.count("\n", self._counted, offset)
        self._counted = offset
        return self._line


def counting_only(probe: Probe) -> Probe:
    """A probe behind the kernel that only counts a warp's lanes out."""
    return replace(probe, body=())


def _stops(found: Mapping[int, Found]) -> dict[int, Stop]:
    stops: dict[int, Stop] = defaultdict(Stop)
    for number, one in found.items():
        for place in one.places:
            stop = stops[place.index]
            (stop.after if place.behind else stop.before).append((number, place.about))
    return dict(stops)


def _falls_through(body: Sequence[Statement]) -> bool:
    """Whether control can run off the end of a body."""
    for statement in reversed(body):
        if isinstance(statement, Label):
            return True
        if isinstance(statement, Instruction):
            return isa.falls_through(statement)
    return True


def leaving(body: Sequence[Statement], opcodes: frozenset[str]) -> Iterator[Instruction]:
    """The instructions of a body at which threads end."""
    for one in body:
        if isinstance(one, Instruction) and one.tokens[0] in opcodes:
            yield one
