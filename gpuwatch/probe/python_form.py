"""The Python form of a probe program, read from its syntax tree and never executed."""

from __future__ import annotations

import ast

from gpuwatch.probe.language import INTEGER_RANGE, LEVELS, REDUCTIONS, TYPES, near
from gpuwatch.probe.model import (
    Field,
    Level,
    Map,
    Probe,
    ProbeRegister,
    Program,
    Reduction,
    ScalarType,
)
from gpuwatch.probe.python_body import BodyReader
from gpuwatch.probe.python_syntax import Syntax, syntax_tree
from gpuwatch.probe.reading import (
    Given,
    SourceText,
    read_map,
    read_sample,
    with_samples,
    word,
)

_MAP_KEYS = ("level", "type", "size", "cap", "scale", "low", "step")
_PROBE_KEYS = ("pos", "position", "level", "before", "sample", "sample_unit")
_TOP_HINT = "a probe file holds imports, CALLBACK, registers, @Map classes and @probe functions"


def parse_python(text: str, source: str) -> Program:
    """Reads a Python probe file; `source` is its name. Raises UserError with the place."""
    reader = _FileReader(SourceText.of(source, text))
    return reader.program()


class _FileReader:
    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._syntax = Syntax(source)
        self._maps: dict[str, Map] = {}
        self._registers: dict[str, ProbeRegister] = {}
        self._functions: dict[str, ast.FunctionDef] = {}
        self._callback = ""

    def program(self) -> Program:
        tree = syntax_tree(self._source)
        for node in tree.body:
            self._declaration(node)
        # Bodies last: they may name what is declared below them.
        probes = tuple([self._probe(function) for function in self._functions.values()])
        docstring = (ast.get_docstring(tree) or "").strip()
        title = docstring.splitlines()[0] if docstring else self._source.leading_comment()
        return with_samples(
            Program(
                name=self._source.name,
                title=title,
                maps=tuple(self._maps.values()),
                registers=tuple(self._registers.values()),
                probes=probes,
                source=self._source.file,
                form="python",
                callback=self._callback,
            )
        )

    def _declaration(self, node: ast.stmt) -> None:
        match node:
            case ast.Import() | ast.ImportFrom():
                self._syntax.learn(node)
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.Assign(targets=[ast.Name(id="CALLBACK")], value=value):
                self._callback = self._string(value)
            case ast.Assign(targets=[ast.Name(id=name)]):
                raise self._syntax.error(
                    f"{name} has no type", node, f"declare a register: {name}: gl.u64 = 0"
                )
            case ast.AnnAssign(target=ast.Name(id=name)):
                self._free(name, node)
                self._registers[name] = self._register(name, node)
            case ast.ClassDef():
                self._free(node.name, node)
                self._maps[node.name] = self._map(node)
            case ast.FunctionDef():
                if node.name in self._functions:
                    raise self._syntax.error(
                        f"{node.name} is defined twice", node, "rename one of them"
                    )
                self._functions[node.name] = node
            case _:
                raise self._syntax.error("this is not part of a probe file", node, _TOP_HINT)

    def _free(self, name: str, node: ast.AST) -> None:
        if name in self._registers or name in self._maps:
            raise self._syntax.error(f"{name} is declared twice", node, "rename one of them")

    def _string(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        raise self._syntax.error("text is needed here", node, 'write it in quotes: "name"')

    def _type(self, node: ast.expr) -> ScalarType:
        found = self._syntax.language_word(node)
        if found is None or found not in TYPES:
            name = found or ast.unparse(node)
            raise self._syntax.error(f"there is no type {name}", node, near(name, TYPES))
        return TYPES[found]

    def _register(self, name: str, node: ast.AnnAssign) -> ProbeRegister:
        type_ = self._type(node.annotation)
        if node.value is None:
            return ProbeRegister(name, type_)
        if type_ == "f32" and (number := self._syntax.number(node.value)) is not None:
            return ProbeRegister(name, type_, number)
        value = self._syntax.integer(node.value)
        if value is None:
            raise self._syntax.error(
                "an initial value is a whole number", node.value, f"write {name}: nl.{type_} = 0"
            )
        least, most = INTEGER_RANGE[type_]
        if type_.startswith("u"):
            least = -(most + 1) // 2
        if not least <= value <= most:
            raise self._syntax.error(
                f"{value} does not fit {type_}", node.value, f"use {least} to {most}"
            )
        return ProbeRegister(name, type_, value)

    def _decorator(self, node: ast.ClassDef | ast.FunctionDef, wanted: str) -> ast.Call:
        """The one decorator that a class or function must carry."""
        if len(node.decorator_list) == 1:
            call = node.decorator_list[0]
            if isinstance(call, ast.Call) and self._syntax.resolve(call.func) in (
                wanted,
                f"language.{wanted}",
            ):
                return call
        raise self._syntax.error(
            f"{node.name} needs the one decorator @{wanted}(...)",
            node,
            f"import {wanted} (from gpuwatch import probe, Map) and write it above",
        )

    def _map(self, node: ast.ClassDef) -> Map:
        call = self._decorator(node, "Map")
        if node.bases or node.keywords:
            raise self._syntax.error("a map has no base class", node, f"write class {node.name}:")
        given = self._syntax.keywords(call, _MAP_KEYS, "Map")
        level = self._level(given, call, "Map")
        fields = self._fields(node)
        return read_map(node.name, level, fields, self._given(given, call), self._syntax.at(node))

    def _given(self, given: dict[str, ast.expr], call: ast.Call) -> Given:
        values = {name: self._syntax.literal(value) for name, value in given.items()}
        return Given(values, lambda name: self._syntax.at(given.get(name, call)))

    def _level(self, given: dict[str, ast.expr], call: ast.Call, what: str) -> Level:
        if "level" not in given:
            raise self._syntax.error(f"{what} needs a level", call, 'write level="warp"')
        node = given["level"]
        return word(self._syntax.literal(node), LEVELS, "level", self._syntax.at(node))

    def _fields(self, node: ast.ClassDef) -> tuple[Field, ...]:
        fields: dict[str, Field] = {}
        for statement in node.body:
            match statement:
                case ast.Pass() | ast.Expr(value=ast.Constant(value=str())):
                    continue
                case ast.AnnAssign(target=ast.Name(id=name), value=value):
                    if name in fields:
                        raise self._syntax.error(
                            f"{name} is declared twice", statement, "rename one"
                        )
                    reduction = self._reduction(value) if value else REDUCTIONS["sum"]
                    fields[name] = Field(name, self._type(statement.annotation), reduction)
                case _:
                    raise self._syntax.error(
                        "a map holds fields only", statement, "write a field as name: gl.u64"
                    )
        return tuple(fields.values())

    def _reduction(self, node: ast.expr) -> Reduction:
        """What stands behind a field: sum, min, max, as a name or in quotes."""
        match node:
            case ast.Name(id=name):
                found: str | None = name
            case ast.Constant(value=str() as name):
                found = name
            case _:
                found = self._syntax.language_word(node)
        return word(found or ast.unparse(node), REDUCTIONS, "a field", self._syntax.at(node))

    def _probe(self, node: ast.FunctionDef) -> Probe:
        call = self._decorator(node, "probe")
        every = node.args
        if every.args or every.posonlyargs or every.kwonlyargs or every.vararg or every.kwarg:
            raise self._syntax.error(
                "a probe takes no arguments", node, f"write def {node.name}():"
            )
        given = self._syntax.keywords(call, _PROBE_KEYS, "probe")
        positions = [given[name] for name in ("pos", "position") if name in given]
        if len(positions) != 1:
            raise self._syntax.error("probe needs one position", call, 'write pos="kernel"')
        before: object = False
        if "before" in given:
            before = self._syntax.literal(given["before"])
            if not isinstance(before, bool):
                raise self._syntax.error(
                    "before is True or False", given["before"], "write before=True"
                )
        body = BodyReader(self._syntax, self._registers, self._maps).actions(node.body)
        sample, unit = read_sample(self._given(given, call))
        return Probe(
            node.name,
            self._string(positions[0]),
            self._level(given, call, "probe"),
            bool(before),
            body,
            self._syntax.at(node),
            sample,
            unit,
        )
