"""The builder of lookup joins."""

from __future__ import annotations

from penstock.errors import TableException
from penstock.table import connectors
from penstock.table.builders.builder import Builder, label_of
from penstock.table.builders.physical import Physical
from penstock.table.logical.building import identity
from penstock.table.logical.nodes import PROCTIME, Join, Relation, Scan, Watermark
from penstock.table.logical.rex import InputRef, conjunction
from penstock.table.operators.join.lookup_join import LookedUp, LookupJoin
from penstock.table.operators.join.materialized_lookup import MaterializedLookupJoin
from penstock.table.options.job_options import NON_DETERMINISTIC
from penstock.table.physical.physical_nodes import Calc
from penstock.table.rules.join_conditions import JoinKeys
from penstock.table.rules.upsert_keys import smallest_key
from penstock.table.types.arrow_forms import arrow_schema


def lookup_join(builder: Builder, relation: Join, keys: JoinKeys) -> Physical:
    """Build a join by processing time with a table that can be looked up by key."""
    found = _lookup_side(relation.right)
    if found is None:
        raise TableException(
            "Processing-time temporal join is not supported with a table that cannot be looked up in: "
            "the right side must be a table of a connector such as jdbc"
        )
    scan, right = found
    asked = [expr.index for key in keys.right if isinstance(expr := right.exprs[key], InputRef)]
    if not asked or len(asked) < len(keys.right) or relation.kind not in {"INNER", "LEFT"}:
        raise TableException("a lookup join is an INNER or LEFT JOIN with an equality of columns of both sides")
    input = builder.build(relation.left)
    name, entry = ".".join(scan.path), scan.table
    declared = connectors.declare_table(
        name, entry.options, scan.columns, scan.metadata, entry.schema.primary_key, entry.partition_keys, builder.batch
    )
    lookup = connectors.connector(name, entry.options).lookup(declared, tuple(asked))
    schema = arrow_schema(relation.columns, input.changelog)
    operator = LookupJoin(
        lookup, keys.left, relation.left.columns, right, conjunction(keys.rest), relation.kind == "LEFT", schema
    )
    operator.changelog, operator.zone = input.changelog, builder.zone
    if input.changelog and builder.config.get(NON_DETERMINISTIC, "IGNORE").strip().upper() == "TRY_RESOLVE":
        return _materialize(builder, relation, input, operator)
    stream = builder.then(input, relation, "Lookup Join", operator)
    return Physical(stream, relation.columns, input.changelog, label_of(relation, "LookupJoin"), (input,))


def _materialize(builder: Builder, relation: Join, input: Physical, join: LookupJoin) -> Physical:
    """Build a lookup join that retracts its own output, even if the table has changed since."""
    left = relation.left
    keys = smallest_key(left) or tuple(place for place, one in enumerate(left.columns) if one.time != PROCTIME)
    operator = MaterializedLookupJoin(join, keys, builder.ttl)
    stream = builder.then_by_key(input, keys, relation, "Materialized Lookup Join", operator)
    return Physical(stream, relation.columns, True, label_of(relation, "LookupJoin"), (input,))


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
