"""Bodies of Python probes: statements and expressions to actions. Nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuwatch.errors import UserError
from gpuwatch.probe.language import CALLS, NAMES, near
from gpuwatch.probe.model import (
    Action,
    Assign,
    Binary,
    Constant,
    Expression,
    Helper,
    If,
    Map,
    ProbeRegister,
    Read,
    Save,
    Unary,
)
from gpuwatch.probe.python_syntax import MAX_DEPTH, Syntax

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "-", ast.Invert: "~", ast.Not: "not"}
_LOGICAL: dict[type[ast.boolop], str] = {ast.And: "and", ast.Or: "or"}

_STATEMENT_HINTS: dict[type[ast.stmt], str] = {
    ast.For: "a probe cannot loop: put it at an instruction that the kernel's own loop runs",
    ast.While: "a probe cannot loop: put it at an instruction that the kernel's own loop runs",
    ast.Return: "a probe returns nothing: save to a map",
    ast.AnnAssign: "declare registers at the top of the file, outside functions",
    ast.FunctionDef: "define probes at the top of the file",
    ast.Import: "import at the top of the file",
    ast.ImportFrom: "import at the top of the file",
}
_EXPRESSION_HINTS: dict[type[ast.expr], str] = {
    ast.IfExp: "use an if statement",
    ast.Subscript: "probes have no arrays: save to a map",
    ast.NamedExpr: "assign in a statement of its own",
    ast.JoinedStr: "probes have no text",
}
_OPERATORS = "operators: + - * / // % & | ^ << >> ~ == != < <= > >= and or not"


@dataclass(slots=True)
class BodyReader:
    """Reads function bodies that may use `registers` and `maps`."""

    syntax: Syntax
    registers: Mapping[str, ProbeRegister]
    maps: Mapping[str, Map]
    _depth: int = 0

    def actions(self, statements: Sequence[ast.stmt]) -> tuple[Action, ...]:
        """The actions of statements, in order; raises UserError for what is not supported."""
        return tuple(a for a in map(self._statement, statements) if a is not None)

    def _statement(self, node: ast.stmt) -> Action | None:
        match node:
            case ast.Pass():
                return None
            case ast.Expr(value=ast.Constant(value=str())):
                return None
            case ast.Global(names=names):
                for name in names:
                    self._register(name, node)
                return None
            case ast.Assign(targets=[target], value=value):
                return Assign(self._target(target), self.expression(value), self.syntax.at(node))
            case ast.AugAssign(target=target, op=op, value=value):
                name = self._target(target)
                combined = Binary(self._operator(op, node), Read(name), self.expression(value))
                return Assign(name, combined, self.syntax.at(node))
            case ast.If():
                return self._if(node)
            case ast.Expr(value=ast.Call() as call):
                return self._save(call)
        hint = _STATEMENT_HINTS.get(type(node), "a probe assigns, tests with if, and saves")
        raise self.syntax.error("this statement is not part of the probe language", node, hint)

    def _if(self, node: ast.If) -> If:
        self._enter(node)
        test = self.expression(node.test)
        then, otherwise = self.actions(node.body), self.actions(node.orelse)
        self._depth -= 1
        return If(test, then, otherwise, self.syntax.at(node))

    def _enter(self, node: ast.AST) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.syntax.error("nested too deeply", node, f"nest at most {MAX_DEPTH} deep")

    def _target(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name):
            raise self.syntax.error(
                "only a register can be assigned to", node, "assign one register: name = value"
            )
        return self._register(node.id, node)

    def _register(self, name: str, node: ast.AST) -> str:
        if name not in self.registers:
            advice = f"declare it at the top of the file ({name}: gl.u64 = 0)"
            close = near(name, self.registers)
            raise self.syntax.error(
                f"register {name} is not declared", node, f"{advice}; {close}" if close else advice
            )
        return name

    def _save(self, call: ast.Call) -> Save:
        function = call.func
        usage = "a call on its own can only be <map>.save(value, ...)"
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            raise self.syntax.error("this call does nothing", call, usage)
        name = function.value.id
        if name not in self.maps:
            raise self.syntax.error(f"there is no map {name}", call, near(name, self.maps) or usage)
        if function.attr != "save":
            raise self.syntax.error(f"a map has no {function.attr}", call, usage)
        self._no_keywords(call)
        values = tuple([self.expression(value) for value in call.args])
        return Save(name, values, self.syntax.at(call))

    def _no_keywords(self, call: ast.Call) -> None:
        if call.keywords:
            raise self.syntax.error(
                "values are given by position, not by keyword", call.keywords[0], "drop the name"
            )

    def expression(self, node: ast.expr) -> Expression:
        """The value of an expression; raises UserError for what is not supported."""
        self._enter(node)
        value = self._expression(node)
        self._depth -= 1
        return value

    def _expression(self, node: ast.expr) -> Expression:
        match node:
            case ast.Constant(value=int()):
                return self._constant(node)
            case ast.Constant(value=float() as number):
                return Constant(number)
            case ast.Name(id=name):
                return Read(self._register(name, node))
            case ast.Attribute():
                return self._name(node)
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, op=op, right=right):
                symbol = self._operator(op, node)
                return Binary(symbol, self.expression(left), self.expression(right))
            case ast.UnaryOp(op=sign, operand=operand):
                return self._unary(sign, operand, node)
            case ast.BoolOp() | ast.Compare():
                return self._test(node)
        hint = _EXPRESSION_HINTS.get(type(node), _OPERATORS)
        raise self.syntax.error("this expression is not part of the probe language", node, hint)

    def _constant(self, node: ast.Constant) -> Constant:
        value = int(node.value)  # type: ignore[arg-type]
        if value >= 1 << 64:
            raise self.syntax.error(
                "the number needs more than 64 bits", node, "use at most 2**64 - 1"
            )
        return Constant(value)

    def _operator(self, op: ast.operator, node: ast.AST) -> str:
        if type(op) not in _BINARY:
            raise self.syntax.error(
                "this operator is not part of the probe language", node, _OPERATORS
            )
        return _BINARY[type(op)]

    def _unary(self, op: ast.unaryop, operand: ast.expr, node: ast.AST) -> Expression:
        value = self.expression(operand)
        if isinstance(op, ast.UAdd):
            return value
        if type(op) not in _UNARY:
            raise self.syntax.error(
                "this operator is not part of the probe language", node, _OPERATORS
            )
        return Unary(_UNARY[type(op)], value)

    def _test(self, node: ast.BoolOp | ast.Compare) -> Expression:
        if isinstance(node, ast.BoolOp):
            first, *others = [self.expression(value) for value in node.values]
            for other in others:
                first = Binary(_LOGICAL[type(node.op)], first, other)
            return first
        if len(node.ops) > 1:
            raise self.syntax.error("a comparison has two sides", node, "write a < b and b < c")
        if type(node.ops[0]) not in _COMPARE:
            raise self.syntax.error(
                "this operator is not part of the probe language", node, _OPERATORS
            )
        left, right = self.expression(node.left), self.expression(node.comparators[0])
        return Binary(_COMPARE[type(node.ops[0])], left, right)

    def _name(self, node: ast.Attribute) -> Helper:
        name = self.syntax.language_word(node)
        if name in NAMES:
            return Helper(name)
        if name in CALLS:
            raise self.syntax.error(f"{name} is a call", node, f"write {name}()")
        raise self._unknown_helper(name or ast.unparse(node), node)

    def _unknown_helper(self, name: str, node: ast.AST) -> UserError:
        known = (*CALLS, *NAMES)
        hint = f"write it as a word of the language: gl.{name}" if name in known else ""
        return self.syntax.error(f"there is no helper {name}", node, hint or near(name, known))

    def _call(self, node: ast.Call) -> Helper:
        name = self.syntax.language_word(node.func)
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            name = node.func.id
        if name in NAMES:
            raise self.syntax.error(f"{name} is not a call", node, f"write it without (): {name}")
        if name is None or name not in CALLS:
            raise self._unknown_helper(name or ast.unparse(node.func), node)
        self._no_keywords(node)
        least, most = CALLS[name]
        if not least <= len(node.args) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            raise self.syntax.error(
                f"{name} takes {wanted} arguments, not {len(node.args)}", node, "correct the call"
            )
        return Helper(name, tuple([self.expression(argument) for argument in node.args]))
