"""Small changes of a program, each of which is likely to make it wrong."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Mutant:
    """A changed program."""

    line: int
    change: str
    tree: ast.Module
    """The changed program, whose lines have the numbers of the original ones."""
    lines: range = range(0)
    """The lines of which a test must run one to notice it."""
    source: str = ""
    """The text of the line."""
    at_import: bool = False
    """Whether the place belongs to the body of the module or of a class."""

    @property
    def text(self) -> str:
        """The text of the changed program."""
        return ast.unparse(self.tree)


def mutants_of(text: str) -> list[Mutant]:
    """Return every program that differs from this one in one place.

    Annotations, docstrings, decorators, lines for the log and `strict` of zip() do not count.
    """
    return [mutant_of(text, index) for index in range(count_mutants(text))]


def count_mutants(text: str) -> int:
    """Count the places of a program that can be changed."""
    return sum(1 for _ in _places(ast.parse(text)))


def changes_of(text: str) -> list[tuple[str, str]]:
    """Return the text of the line and the change of every mutant."""
    written = text.splitlines()
    places = _places(ast.parse(text))
    return [(written[getattr(node, "lineno", 1) - 1].strip(), _describe(node, kind)[1]) for node, kind, _ in places]


def mutant_of(text: str, index: int) -> Mutant:
    """Change one place of a program, by its number."""
    tree = ast.parse(text)
    place = next(islice(_places(tree), index, None))
    lines = _lines(place[0])
    functions = [range(one.lineno, (one.end_lineno or 0) + 1) for one in ast.walk(tree) if isinstance(one, FUNCTIONS)]
    line, change = _apply(place)
    at_import = not any(line in function for function in functions)
    return Mutant(line, change, ast.fix_missing_locations(tree), lines, text.splitlines()[line - 1].strip(), at_import)


def _lines(node: ast.AST) -> range:
    tested = node.test if isinstance(node, ast.If | ast.While | ast.IfExp) else node
    return range(getattr(tested, "lineno", 0), getattr(tested, "end_lineno", 0) + 1)


Place = tuple[ast.AST, str, ast.AST]
"""A node, the kind of change, and the node's owner."""


_CHECKS = ("strict", "frozen", "slots", "eq")
"""Arguments that only forbid something, or are for dataclasses."""


def _places(tree: ast.Module) -> Iterator[Place]:
    for owner in ast.walk(tree):
        if isinstance(owner, ast.AnnAssign | ast.arg) or (isinstance(owner, ast.keyword) and owner.arg in _CHECKS):
            continue
        for node in ast.iter_child_nodes(owner):
            yield from ((node, kind, owner) for kind in _kinds(node, owner))


def _kinds(node: ast.AST, owner: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            yield "compare"
        case ast.BinOp(op=operator) if type(operator) in ARITHMETIC and not _is_text(node):
            yield "compute"
        case ast.BoolOp():
            yield "and-or"
        case ast.If() | ast.While() | ast.IfExp():
            yield "negate"
        case ast.Constant(value=bool()) | ast.Constant(value=int()):
            yield "constant"
        case ast.Continue() | ast.Break():
            yield "jump"
        case ast.Expr(value=ast.Call(func=called)) if hasattr(owner, "body") and not _is_log(called):
            yield "delete"


def _is_log(called: ast.expr) -> bool:
    return isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "log"


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(part, ast.JoinedStr) or _is_string(part) for part in (node.left, node.right))


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _apply(place: Place) -> tuple[int, str]:
    """Make one change in a tree, and describe it."""
    node, kind, owner = place
    new, change = _describe(node, kind)
    for name, value in ast.iter_fields(owner):
        if value is node:
            setattr(owner, name, new)
        elif isinstance(value, list) and any(one is node for one in value):
            setattr(owner, name, [new if one is node else one for one in value])
    return getattr(node, "lineno", 0), change


def _describe(node: ast.AST, kind: str) -> tuple[ast.AST, str]:
    """Return a changed copy of a node, and a description of the change."""
    new = _changed(copy.copy(node), kind)
    return new, f"{kind}: {ast.unparse(node).splitlines()[0]}  ->  {ast.unparse(new).splitlines()[0]}"


def _changed(node: ast.AST, kind: str) -> ast.AST:
    match node:
        case ast.Compare(ops=[operator]):
            node.ops = [COMPARISONS[type(operator)]()]
        case ast.BinOp(op=operator):
            node.op = ARITHMETIC[type(operator)]()
        case ast.BoolOp(op=operator):
            node.op = ast.Or() if isinstance(operator, ast.And) else ast.And()
        case ast.If() | ast.While() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value)):
            node.value = value + 1
        case ast.Continue():
            return ast.Break()
        case ast.Break():
            return ast.Continue()
        case ast.Expr():
            return ast.Pass()
    return node
