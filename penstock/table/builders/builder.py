"""The builder of operators. A function for each kind of relation makes a Physical of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, Protocol

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.common.configuration import parse_duration
from penstock.datastream.builders.keyed_stream import KeyedStream
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.engine.operators.operator import Operator
from penstock.errors import TableException
from penstock.graph.transformations import StreamRef, Transformation
from penstock.table.builders.physical import Physical
from penstock.table.logical.nodes import Columns, Insert, Relation, walk_plan
from penstock.table.logical.rex import conjuncts
from penstock.table.operators.base.table_operator import KeyedTableOperator, TableOperator
from penstock.table.physical.physical_nodes import Calc
from penstock.table.rules.calcs import is_repeatable
from penstock.table.rules.upsert_keys import upsert_keys

Build = Callable[["Builder", Any], Physical]


class Options(Protocol):
    """The options of a query."""

    def get(self, key: str, default_value: str) -> str:
        """Return the value of an option, or the default."""
        ...


class Builder:
    """Makes the operators of the plans of one program. A relation that occurs twice is built once."""

    def __init__(self, env: StreamExecutionEnvironment, config: Options, batch: bool, kinds: dict[type, Build]) -> None:
        self.env = env
        self.config = config
        self.batch = batch
        self._kinds = kinds
        self._built: dict[Any, tuple[Relation, Physical]] = {}

    def build(self, relation: Relation) -> Physical:
        """Return the operators of a relation. Build them if they are not known yet."""
        key = sharing_key(relation)
        known = self._built.get(key)
        if known is not None:
            return known[1]
        how = self._kinds.get(type(relation))
        if how is None:
            raise TableException(f"{type(relation).__name__} cannot be run yet")
        made = how(self, relation)
        self._built[key] = (relation, made)
        return made

    def know(self, relation: Relation, physical: Physical) -> None:
        """Use `physical` for a relation, instead of building it."""
        self._built[sharing_key(relation)] = (relation, physical)

    # --- options ---
    @property
    def is_parallel(self) -> bool:
        """True if an operator has several subtasks."""
        return self.env.get_parallelism() > 1

    @property
    def zone(self) -> str:
        """Return the time zone of the session."""
        return self.config.get("table.local-time-zone", "UTC")

    def duration(self, key: str) -> int | None:
        """Return an option that is a duration, in milliseconds, or None if it is not set."""
        found = self.config.get(key, "")
        return parse_duration(found) if found else None

    @property
    def ttl(self) -> int:
        """The time to live of state, in milliseconds, or 0 for no limit."""
        return 0 if self.batch else self.duration("table.exec.state.ttl") or 0

    def ttl_of(self, own: int | None) -> int:
        """Return the time to live of state, in milliseconds. A query may have a time to live of its own."""
        return self.ttl if own is None or self.batch else own

    # --- operators ---
    def then(self, input: Physical, relation: Relation, name: str, operator: Operator) -> DataStream:
        """Add an operator after another, in the same subtasks, so that rows and watermarks keep their order."""
        refs = input.stream.input_refs()
        stream = self._add(relation, name, operator, [refs])
        above = {(ref.node.parallelism, ref.node.non_parallel) for ref in refs}
        if len(above) == 1:
            stream._node.parallelism, stream._node.non_parallel = above.pop()
        return stream

    def then_by_key(
        self, input: Physical, keys: Sequence[int], relation: Relation, name: str, operator: Operator
    ) -> DataStream:
        """Add an operator that gets all rows of a key in one subtask. Without keys there is one subtask."""
        stream = self._add(relation, name, operator, [self.by_key(input, keys)])
        return stream if keys else stream.force_non_parallel()

    def two_inputs(
        self,
        inputs: tuple[Physical, Physical],
        keys: tuple[Sequence[int], Sequence[int]],
        relation: Relation,
        name: str,
        operator: Operator,
    ) -> DataStream:
        """Add an operator that gets all rows of a key from two inputs in one subtask."""
        refs = [self.by_key(input, own) for input, own in zip(inputs, keys, strict=True)]
        stream = self._add(relation, name, operator, refs)
        return stream if keys[0] else stream.force_non_parallel()

    def by_key(self, input: Physical, keys: Sequence[int]) -> Sequence[StreamRef]:
        """Return the edges of an input partitioned by key."""
        return KeyedStream(input.stream, ColumnKeys(tuple(keys))).input_refs()

    def _add(
        self, relation: Relation, name: str, operator: Operator, inputs: Sequence[Sequence[StreamRef]]
    ) -> DataStream:
        """Add a node. It runs only if something reads it. Its uid follows from the plan alone."""
        if isinstance(operator, TableOperator | KeyedTableOperator):
            operator.upsert_keys = _keys_to_check(relation)
            operator.forgets = bool(self.ttl) or any(map(_has_own_ttl, walk_plan(relation)))
        node = Transformation(name, operator, [tuple(refs) for refs in inputs])
        node.uid = self.uid(relation, name)
        node.description = relation.details() or None
        return DataStream(self.env, [StreamRef(node)])

    def uid(self, relation: Relation, name: str) -> str:
        """Return the uid of an operator.

        It is equal for the same query, and different from any other uid of the program.
        """
        digest = hashlib.sha256(f"{name} {fingerprint(relation)}".encode()).hexdigest()[:12]
        uid = f"{name.lower().replace(' ', '-')}-{digest}"
        known = self.env.query_uids
        known[uid] = count = known.get(uid, 0) + 1
        return uid if count == 1 else f"{uid}-{count}"


def _keys_to_check(relation: Relation) -> tuple[tuple[int, ...], ...]:
    """Return the keys whose changes are checked. Versions of a table have none, as they come without deletions."""
    if any(getattr(part, "every_version", False) for part in walk_plan(relation)):
        return ()
    return tuple(tuple(sorted(key)) for key in upsert_keys(relation))


def _has_own_ttl(relation: Relation) -> bool:
    """Return True if a hint sets the time to live of a relation's state."""
    ttl = getattr(relation, "ttl", None)
    return any(ttl) if isinstance(ttl, tuple) else bool(ttl)


def sharing_key(relation: Relation) -> Any:
    """Return a key that is equal for relations that can share one operator.

    A relation that cannot be shared has its id as key. Two INSERTs are never shared, even if they write the same rows.
    """
    if isinstance(relation, Insert):
        return id(relation)
    try:
        key = _structure(relation)
        hash(key)
    except (TypeError, _Unshared):
        return id(relation)
    return key


class _Unshared(Exception):
    """The error for a relation that may have another result each time it is computed."""


def _structure(relation: Relation) -> tuple[Any, ...]:
    parts: list[Any] = [type(relation)]
    for part in fields(relation):
        value = getattr(relation, part.name)
        if isinstance(value, Relation):
            parts.append(_structure(value))
        elif part.name == "parts":
            parts.append(tuple(map(_structure, value)))
        elif part.name == "table":
            parts.append((str(value.schema), tuple(sorted(value.options.items())), value.partition_keys))
        elif part.name in {"stream", "rows"}:  # rows may be many
            parts.append(id(value))
        else:
            parts.append(value)
    if isinstance(relation, Calc) and not all(map(is_repeatable, (*relation.exprs, *conjuncts(relation.condition)))):
        raise _Unshared
    return tuple(parts)


def fingerprint(relation: Relation) -> str:
    """Return a relation and everything below it as text, with types."""
    inside = ", ".join(fingerprint(part) for part in relation.inputs())
    return f"{type(relation).__name__}[{relation.details()}]{_types(relation.columns)}({inside})"


def _types(columns: Columns) -> str:
    return "{" + ", ".join(column.type.as_sql() for column in columns) + "}"


def label_of(relation: Relation, name: str) -> str:
    """Return the text of an operator in explanations."""
    return f"{name}({relation.details()})"
