"""TO_CHANGELOG and FROM_CHANGELOG in FROM: changes as rows that are inserted, and the other way round."""

from __future__ import annotations

from penstock.table.functions.evaluation import constant_texts
from penstock.table.logical.changelog_relations import OP, Pairs, from_changelog, to_changelog
from penstock.table.logical.nodes import Relation
from penstock.table.logical.rex import Rex
from penstock.table.sql.parse.problems import invalid, suggestion
from penstock.table.sql.parse.syntax import Derived, Descriptor, Invoke, Nested, Node, TableArg

FUNCTIONS = {"TO_CHANGELOG": to_changelog, "FROM_CHANGELOG": from_changelog}
PARAMETERS = ("input", "op", "op_mapping")


def arguments(call: Invoke) -> dict[str, Node]:
    """Return the arguments by name."""
    name = call.name.upper()
    signature = f"{name}(input => TABLE t [, op => DESCRIPTOR(c)] [, op_mapping => MAP['...', '...']])"
    if len(call.args) > len(PARAMETERS):
        raise invalid(call.at, f"{name} takes up to {len(PARAMETERS)} arguments, as in {signature}")
    found: dict[str, Node] = {}
    for place, arg in enumerate(call.args):
        given = (call.names[place] if call.names else None) or PARAMETERS[place]
        if given.lower() not in PARAMETERS:
            known = suggestion(given.lower(), PARAMETERS)
            raise invalid(arg.at, f"{name} has no argument '{given}'; write {signature}{known}")
        found[given.lower()] = arg
    if "input" not in found:
        raise invalid(call.at, f"{name} misses its table; write {signature}")
    return found


def table_argument(call: Invoke, args: dict[str, Node]) -> TableArg:
    """Return the table argument."""
    data = args["input"]
    if isinstance(data, Nested) and data.kind == "SCALAR":
        return TableArg(data.at, Derived(data.at, data.query))
    if not isinstance(data, TableArg):
        raise invalid(data.at, "Invalid argument value. Argument 'input' expects a table to be passed.")
    if data.partition:
        raise invalid(data.at, f"Only tables with set semantics may be partitioned; {call.name.upper()} takes each row")
    return data


def changelog_relation(call: Invoke, args: dict[str, Node], table: Relation, mapping: Rex | None) -> Relation:
    """Return the relation of a call. `mapping` is the bound argument op_mapping, or None without one."""
    op = _column_name(args["op"]) if "op" in args else OP
    pairs = None if mapping is None else _pairs(args["op_mapping"], mapping)
    return FUNCTIONS[call.name.upper()](table, op, pairs)


def _column_name(node: Node) -> str:
    if not isinstance(node, Descriptor) or len(node.columns) != 1:
        raise invalid(node.at, "The descriptor for argument 'op' must contain exactly one column name.")
    return node.columns[0]


def _pairs(node: Node, mapping: Rex) -> Pairs:
    pairs = constant_texts(mapping)
    if pairs is None:
        raise invalid(node.at, "The 'op_mapping' argument must be a constant MAP literal.")
    return pairs
