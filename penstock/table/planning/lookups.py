"""Builder of lookup joins."""

from __future__ import annotations

from penstock.errors import TableException
from penstock.table import connectors
from penstock.table.arrow import arrow_schema
from penstock.table.plan.nodes import Join, Relation, Scan
from penstock.table.plan.rex import conjunction
from penstock.table.planning.builder import Builder, label_of
from penstock.table.planning.join_conditions import JoinKeys
from penstock.table.planning.physical import Physical
from penstock.table.runtime.lookup_join import LookupJoin


def lookup_join(builder: Builder, relation: Join, keys: JoinKeys) -> Physical:
    """A join by processing time with a table that can be asked for rows of a key."""
    scan = _scan_of(relation.right)
    if scan is None:
        raise TableException(
            "Processing-time temporal join is not supported with a table that cannot be looked up in: "
            "the right side must be a table of a connector such as jdbc, as it is"
        )
    if not keys.left or relation.kind not in {"INNER", "LEFT"}:
        raise TableException("a lookup join is an INNER or LEFT JOIN with an equality of columns of both sides")
    input = builder.build(relation.left)
    name, entry = ".".join(scan.path), scan.table
    declared = connectors.declared(
        name, entry.options, scan.columns, scan.metadata, entry.schema.primary_key, entry.partition_keys, builder.batch
    )
    lookup = connectors.connector(name, entry.options).lookup(declared, tuple(keys.right))
    operator = LookupJoin(
        lookup,
        keys.left,
        (relation.left.columns, scan.columns),
        (None, conjunction(keys.rest)),
        relation.kind == "LEFT",
        arrow_schema(relation.columns, input.changelog),
    )
    operator.changelog, operator.zone = input.changelog, builder.zone
    stream = builder.then(input, relation, "Lookup Join", operator)
    return Physical(stream, relation.columns, input.changelog, label_of(relation, "LookupJoin"), (input,))


def _scan_of(relation: Relation) -> Scan | None:
    """The table itself, below nothing but projections that keep it as it is."""
    return relation if isinstance(relation, Scan) else None
