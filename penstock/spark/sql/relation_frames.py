"""DataFrames of relations, and the builder that makes DataFrames instead of streams.

The columns of a DataFrame have generated names, since those of a query may repeat. They are found by position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.datastream.data_stream import DataStream
from penstock.datastream.stream_execution_environment import StreamExecutionEnvironment
from penstock.engine.job.deploying import pickle_part
from penstock.engine.operators.operator import Operator
from penstock.spark.sessions import sql_session
from penstock.spark.sql.batch_transport import declare_columns, pack_batch, spark_type, transport_type
from penstock.spark.sql.query_tasks import NOBODY, OperatorTask, Surroundings, inputs_of
from penstock.spark.sql.refusal import Untranslatable
from penstock.table.builders.builder import Builder
from penstock.table.builders.planner import builders, rules
from penstock.table.logical.nodes import Relation
from penstock.table.physical.io_nodes import SparkSQL
from penstock.table.physical.physical_node import PhysicalNode
from penstock.table.rules.implementation.chooser import Chooser, Rule
from penstock.table.rules.implementation.query_settings import Options, QuerySettings
from penstock.table.types.arrow_forms import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TAG = "of_input"
_numbers = count()


@dataclass(frozen=True)
class Frame:
    """A DataFrame and the names of its columns, one for each column of the relation.

    A relation without columns has one column here, whose values mean nothing.
    """

    data: DataFrame
    names: tuple[str, ...]
    of_files: bool = False
    """Whether Spark only reads files for this DataFrame. Reading them again for each use is then best."""

    def select(self, texts: Sequence[str]) -> Frame:
        """Return a DataFrame with the values of these expressions over the columns."""
        names = new_names(len(texts))
        written = list(texts) or ["CAST(NULL AS BOOLEAN)"]
        named = [f"{text} AS {name}" for text, name in zip(written, names, strict=True)]
        return Frame(self.data.selectExpr(*named), names)

    def where(self, text: str) -> Frame:
        """Return a DataFrame with the rows that fulfil a condition."""
        return Frame(self.data.filter(text), self.names)


def new_names(width: int) -> tuple[str, ...]:
    """Return column names that no other DataFrame has, so that two DataFrames can be joined."""
    number = next(_numbers)
    return tuple(f"c{number}_{index}" for index in range(max(1, width)))


class FrameStream(DataStream):
    """A DataFrame in the place where a builder expects the stream of a relation."""

    def __init__(self, environment: StreamExecutionEnvironment, frame: Frame, schema: pa.Schema) -> None:
        super().__init__(environment, [])
        self.frame = frame
        self.schema = schema

    def union(self, *streams: DataStream) -> DataStream:
        data = self.frame.data
        for stream in streams:
            data = data.union(frame_of(stream).data)
        return FrameStream(self._environment, Frame(data, self.frame.names), self.schema)


def frame_of(stream: DataStream) -> Frame:
    """Return the DataFrame that a FrameStream holds."""
    assert isinstance(stream, FrameStream)
    return stream.frame


Native = Callable[["FrameBuilder", Any], "Frame | None"]
"""Function that translates a relation to Spark SQL. It returns None if Spark cannot express the relation."""


class FrameChooser(Chooser):
    """Chooses Spark SQL where possible, otherwise nodes of our own."""

    def __init__(
        self,
        settings: QuerySettings,
        rules: Mapping[type, Rule],
        translate: Callable[[Relation], PhysicalNode | None],
    ) -> None:
        """Create a chooser. `translate` returns None if Spark cannot express a relation."""
        super().__init__(settings, rules)
        self._translate = translate

    def choose_anew(self, relation: Relation) -> PhysicalNode:
        return self._translate(relation) or super().choose_anew(relation)


class FrameBuilder(Builder):
    """Builds DataFrames: in Spark SQL where possible, otherwise with our own operators."""

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        config: Options,
        session: SparkSession,
        natives: Mapping[type, Native],
        surroundings: Surroundings,
    ) -> None:
        settings = QuerySettings(config, batch=True, is_parallel=True)  # Spark spreads rows over tasks
        super().__init__(env, FrameChooser(settings, rules(), self._translate), builders())
        self.session = session
        self.surroundings = surroundings
        self._natives = natives

    def _translate(self, relation: Relation) -> PhysicalNode | None:
        native = self._natives.get(type(relation))
        frame = None if native is None else native(self, relation)
        if frame is None:
            return None
        return SparkSQL(relation, (), False, FrameStream(self.env, frame, arrow_schema(relation.columns)))

    def frame(self, relation: Relation) -> Frame:
        """Build a relation that is the input of another, and return its DataFrame."""
        return frame_of(self.build(relation))

    # --- our operators ---
    def then(self, input: DataStream, relation: Relation, name: str, operator: Operator) -> DataStream:
        return self.run_operator([input], frame_of(input).data, relation, name, operator)

    def then_by_key(
        self, input: DataStream, keys: Sequence[int], relation: Relation, name: str, operator: Operator
    ) -> DataStream:
        frame = frame_of(input)
        if keys:
            data = frame.data.repartition(*(frame.names[key] for key in keys))
            return self.run_operator([input], data, relation, name, operator)
        data = self._tag_inputs([input], [()])
        return self.run_operator([input], data, relation, name, operator, True)

    def two_inputs(
        self,
        inputs: tuple[DataStream, DataStream],
        keys: tuple[Sequence[int], Sequence[int]],
        relation: Relation,
        name: str,
        operator: Operator,
    ) -> DataStream:
        left, right = inputs
        assert isinstance(right, FrameStream)
        apart = FrameStream(self.env, right.frame.select(right.frame.names), right.schema)
        return self.run_operator(inputs, self._tag_inputs([left, apart], keys), relation, name, operator, True)

    def _tag_inputs(self, streams: Sequence[DataStream], keys: Sequence[Sequence[int]]) -> DataFrame:
        """Return the rows of several DataFrames in one, partitioned by key, each with the number of its input.

        Without keys, the rows are in one partition and get one additional row. Spark runs no task for a DataFrame
        without rows, but some operators emit rows even without input.
        """
        columns = [(at, *typed) for at, stream in enumerate(streams) for typed in _column_types(stream)]
        parts = []
        for number, stream in enumerate(streams):
            frame = frame_of(stream)
            at = [f"{frame.names[key]} AS key_{place}" for place, key in enumerate(keys[number])]
            parts.append(frame.data.selectExpr(*_pad(columns, number), *at))
        if keys[0]:
            names = [f"key_{place}" for place in range(len(keys[0]))]
            return _union_all(parts).repartition(*names).drop(*names)
        parts.append(self.session.range(1).selectExpr(*_pad(columns, NOBODY)))
        return _union_all(parts).repartition(1)

    def run_operator(
        self,
        inputs: Sequence[DataStream],
        data: DataFrame,
        relation: Relation,
        name: str,
        operator: Operator,
        tagged: bool = False,
    ) -> DataStream:
        """Run an operator over the rows of each partition, and return a stream of its results."""
        schema = getattr(operator, "schema", None)
        if not isinstance(schema, pa.Schema) or operator.batch_keys():
            raise Untranslatable(f"{name} needs its input sorted by key")
        names, uid = new_names(len(schema)), self.uid(relation, name)
        schemas = [input.schema for input in inputs if isinstance(input, FrameStream)]
        task = OperatorTask(
            pickle_part(operator, name, uid), name, uid, inputs_of(schemas), tagged, names, self.surroundings
        )
        made = sql_session.map_partitions(data, task, declare_columns(names, schema))
        return FrameStream(self.env, Frame(made, names), schema)

    def of_batch(self, batch: pa.RecordBatch) -> Frame:
        """Return a DataFrame of a batch in the program's memory."""
        names = new_names(batch.num_columns)
        table = pa.Table.from_batches([pack_batch(batch, names)])
        data = sql_session.frame_of_table(self.session, table, declare_columns(names, batch.schema))
        return Frame(data if batch.num_rows > MOST_TOGETHER else data.coalesce(1), names)


def _column_types(stream: DataStream) -> list[tuple[str, str]]:
    """Return the columns of a DataFrame, each with Spark's name for its type."""
    assert isinstance(stream, FrameStream)
    kinds = [spark_type(transport_type(field.type)) for field in stream.schema] or ["BOOLEAN"]
    return list(zip(stream.frame.names, kinds, strict=True))


def _pad(columns: Sequence[tuple[int, str, str]], number: int) -> list[str]:
    """Return the columns of all inputs and the number of this one. The columns of other inputs are NULL."""
    own = [name if at == number else f"CAST(NULL AS {kind}) AS {name}" for at, name, kind in columns]
    return [*own, f"CAST({number} AS INT) AS {TAG}"]


def _union_all(parts: Sequence[DataFrame]) -> DataFrame:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.union(part)
    return whole


MOST_TOGETHER = 10_000
"""Batches of the program with at most this many rows stay in one partition, in their order. Larger ones are spread."""
