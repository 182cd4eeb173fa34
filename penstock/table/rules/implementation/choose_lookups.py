"""The rule for lookup joins."""

from __future__ import annotations

from penstock.errors import TableException
from penstock.table.logical.building import identity
from penstock.table.logical.kinds import JoinKind
from penstock.table.logical.nodes import PROCTIME, Join, Relation, Scan, Watermark
from penstock.table.logical.optimised_nodes import Calc
from penstock.table.logical.rex import InputRef, conjunction
from penstock.table.operators.join.lookup_join import LookedUp
from penstock.table.options.job_options import NON_DETERMINISTIC
from penstock.table.physical import join_nodes as nodes
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.rules.implementation.choose_io import declare
from penstock.table.rules.implementation.chooser import Chooser
from penstock.table.rules.join_conditions import JoinKeys
from penstock.table.rules.upsert_keys import smallest_key


def choose_lookup_join(chooser: Chooser, relation: Join, keys: JoinKeys) -> PhysicalNode:
    """Choose the node of a join by processing time with a table that can be looked up by key."""
    found = _lookup_side(relation.right)
    if found is None:
        raise TableException(
            "Processing-time temporal join is not supported with a table that cannot be looked up in: "
            "the right side must be a table of a connector such as jdbc"
        )
    scan, right = found
    asked = [expr.index for key in keys.right if isinstance(expr := right.exprs[key], InputRef)]
    if not asked or len(asked) < len(keys.right) or relation.kind not in {JoinKind.INNER, JoinKind.LEFT}:
        raise TableException("a lookup join is an INNER or LEFT JOIN with an equality of columns of both sides")
    settings, input = chooser.settings, chooser.choose(relation.left)
    connector, table = declare(settings, scan, scan.metadata)
    lookup = connector.lookup(table, tuple(asked))
    own = (tuple(keys.left), right, conjunction(keys.rest))
    if input.changelog and settings.word(NON_DETERMINISTIC, "IGNORE") == "TRY_RESOLVE":
        kept_by = _identity(relation.left)
        return nodes.MaterializedLookupJoin(relation, (input,), True, lookup, *own, kept_by, settings.ttl)
    return nodes.LookupJoin(relation, (input,), input.changelog, lookup, *own)


def _identity(left: Relation) -> tuple[int, ...]:
    """Return the columns that identify a row. They are the same in its retraction, unlike the time of processing."""
    return smallest_key(left) or tuple(place for place, one in enumerate(left.columns) if one.time != PROCTIME)


def _lookup_side(relation: Relation) -> tuple[Scan, LookedUp] | None:
    """Return the table and the projection and filter over it, or None if it cannot be looked up."""
    match relation:
        case Scan():
            return relation, LookedUp(relation.columns, tuple(identity(relation)))
        case Calc(input=Scan() as scan):
            return scan, LookedUp(scan.columns, relation.exprs, relation.condition)
        case Watermark(input=below):
            return _lookup_side(below)
    return None
