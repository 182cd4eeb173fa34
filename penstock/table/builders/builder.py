"""The builder of operators. A function for each kind of physical node makes its operators."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.datastream.builders.keyed_stream import KeyedStream
from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.engine.operators.operator import Operator
from penstock.graph.transformations import StreamRef, Transformation
from penstock.table.logical.nodes import Columns, Relation, walk_plan
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.rules.implementation.chooser import Chooser
from penstock.table.rules.upsert_keys import upsert_keys

Build = Callable[..., DataStream]
"""Function of a builder, a node, and the streams of its inputs. It returns the stream of the node's output."""


class Builder:
    """Makes the operators of the plans of one program. A node that occurs twice is built once."""

    def __init__(self, env: StreamExecutionEnvironment, chooser: Chooser, kinds: Mapping[type, Build]) -> None:
        self.env = env
        self.chooser = chooser
        self.settings = chooser.settings
        self._kinds = kinds
        self._built: dict[int, tuple[PhysicalNode, DataStream]] = {}

    def build(self, relation: Relation) -> DataStream:
        """Return the stream of batches of a relation."""
        return self.build_node(self.chooser.choose(relation))

    def build_node(self, node: PhysicalNode) -> DataStream:
        """Return the stream of batches of a node. Build its operators if they are not known yet."""
        known = self._built.get(id(node))
        if known is None:
            inputs = [self.build_node(input) for input in node.inputs]
            known = self._built[id(node)] = (node, self._kinds[type(node)](self, node, *inputs))
        return known[1]

    # --- operators ---
    def form(self, node: PhysicalNode) -> OutputForm:
        """Return the form of the output of a node's operator."""
        return self.form_of(node.relation, node.schema)

    def form_of(self, relation: Relation, schema: pa.Schema) -> OutputForm:
        """Return the form of the output of an operator of a relation."""
        forgets = bool(self.settings.ttl) or any(map(_has_own_ttl, walk_plan(relation)))
        return OutputForm(schema, _keys_to_check(relation), forgets)

    def then(self, input: DataStream, relation: Relation, name: str, operator: Operator) -> DataStream:
        """Add an operator after another, in the same subtasks, so that rows and watermarks keep their order."""
        refs = input.input_refs()
        stream = self._add(relation, name, operator, [refs])
        above = {(ref.node.parallelism, ref.node.non_parallel) for ref in refs}
        if len(above) == 1:
            stream._node.parallelism, stream._node.non_parallel = above.pop()
        return stream

    def then_by_key(
        self, input: DataStream, keys: Sequence[int], relation: Relation, name: str, operator: Operator
    ) -> DataStream:
        """Add an operator that gets all rows of a key in one subtask. Without keys there is one subtask."""
        stream = self._add(relation, name, operator, [self.by_key(input, keys)])
        return stream if keys else stream.force_non_parallel()

    def two_inputs(
        self,
        inputs: tuple[DataStream, DataStream],
        keys: tuple[Sequence[int], Sequence[int]],
        relation: Relation,
        name: str,
        operator: Operator,
    ) -> DataStream:
        """Add an operator that gets all rows of a key from two inputs in one subtask."""
        refs = [self.by_key(input, own) for input, own in zip(inputs, keys, strict=True)]
        stream = self._add(relation, name, operator, refs)
        return stream if keys[0] else stream.force_non_parallel()

    def by_key(self, input: DataStream, keys: Sequence[int]) -> Sequence[StreamRef]:
        """Return the edges of an input partitioned by key."""
        return KeyedStream(input, ColumnKeys(tuple(keys))).input_refs()

    def _add(
        self, relation: Relation, name: str, operator: Operator, inputs: Sequence[Sequence[StreamRef]]
    ) -> DataStream:
        """Add a node. It runs only if something reads it. Its uid follows from the plan alone."""
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
    """Return the upsert keys whose changes are checked.

    A plan that reads every version of a table has no such keys: an old version is replaced without a deletion.
    """
    if any(getattr(part, "every_version", False) for part in walk_plan(relation)):
        return ()
    return tuple(tuple(sorted(key)) for key in upsert_keys(relation))


def _has_own_ttl(relation: Relation) -> bool:
    """Return True if a hint sets the time to live of a relation's state."""
    ttl = getattr(relation, "ttl", None)
    return any(ttl) if isinstance(ttl, tuple) else bool(ttl)


def fingerprint(relation: Relation) -> str:
    """Return a relation and everything below it as text, with types."""
    inside = ", ".join(fingerprint(part) for part in relation.inputs())
    return f"{type(relation).__name__}[{relation.details()}]{_types(relation.columns)}({inside})"


def _types(columns: Columns) -> str:
    return "{" + ", ".join(column.type.as_sql() for column in columns) + "}"
