"""DataFrames of the program's values, of files that Spark reads itself, and of every other bounded source."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.connectors.files.access import Files
from penstock.datastream.data_stream import DataStream
from penstock.engine.job.deploying import pickle_part
from penstock.engine.operators.operator import Clock, Operator, OperatorContext
from penstock.engine.operators.sources.readers import CollectionSource
from penstock.engine.operators.sources.source_operator import SourceOperator
from penstock.engine.operators.sources.split_source import SplitSource
from penstock.spark.sessions import sql_session
from penstock.spark.sql.batch_transport import declare_columns, quote, spark_type
from penstock.spark.sql.query_tasks import Gathered, SourceTask
from penstock.spark.sql.refusal import Untranslatable
from penstock.spark.sql.relation_frames import Frame, FrameBuilder, Native, new_names
from penstock.table import connectors
from penstock.table.logical.nodes import Scan, StreamScan, Values
from penstock.table.logical.rex import Literal
from penstock.table.operators.base.records import FromRecords
from penstock.table.operators.io.row_conversions import FromValues, values_batch
from penstock.table.rules.implementation.choose_io import warn_of_nanoseconds
from penstock.table.types.arrow_forms import arrow_schema

PARQUET_OPTIONS = {"connector", "path", "format"}
MOST_FOOTERS = 64
"""Most files whose schemas are checked before Spark reads a table."""
_NAMEABLE = re.compile(r"(/[A-Za-z0-9@=,+-][A-Za-z0-9_.@=,+-]*)+")
"""Paths that Spark takes literally: they contain no pattern and name nothing hidden."""
_MOST_ASSIGNED = 1 << 30
_SPLITS_A_CORE = 4


def values(builder: FrameBuilder, relation: Values) -> Frame:
    """Translate literal rows."""
    rows = [tuple(one.value if isinstance(one, Literal) else one for one in row) for row in relation.rows]
    return builder.of_batch(values_batch(relation.columns, rows))


# --- streams of the program ---
def stream_scan(builder: FrameBuilder, relation: StreamScan) -> Frame:
    """Translate a DataStream that is only a collection. Other streams need our own operators."""
    if relation.changelog:
        raise Untranslatable("a stream of changes")
    held = _collection(relation.stream)
    if held is None:
        raise Untranslatable("a DataStream that is more than a collection")
    output = Gathered()
    operator = FromValues(relation.columns, relation.metadata, False)
    operator.open(OperatorContext("Table From Stream", "-", 0, 1, 128, output, {}, Clock(), batch=True))
    operator.records(held, None)
    schema = arrow_schema(relation.columns)
    whole = pa.Table.from_batches(list(output.batches()), schema).combine_chunks()
    batch = next(iter(whole.to_batches()), pa.RecordBatch.from_pylist([], schema))
    return builder.of_batch(batch)


def _collection(stream: DataStream) -> list[Any] | None:
    refs = stream.refs
    operator = refs[0].node.operator if len(refs) == 1 else None
    if isinstance(operator, SourceOperator) and isinstance(operator.source, CollectionSource):
        return operator.source.values
    return None


# --- tables ---
def scan(builder: FrameBuilder, relation: Scan) -> Frame:
    """Translate a scan of a table."""
    if relation.changelog:
        raise Untranslatable("a table of changes")
    warn_of_nanoseconds(".".join(relation.path), relation.columns)
    return _parquet(builder, relation) or _read(builder, relation)


def _parquet(builder: FrameBuilder, relation: Scan) -> Frame | None:
    """Return a DataFrame of Parquet files on this machine's disks, or None if their columns have other types."""
    options = dict(relation.table.options)
    kinds = options.get("connector"), options.get("format")
    if kinds != ("filesystem", "parquet") or not set(options) <= PARQUET_OPTIONS or relation.metadata:
        return None
    if relation.table.partition_keys or not relation.columns:
        return None
    place = Files(options["path"])
    found = place.visible()
    paths = sorted(f"{place.root}/{name}" if name else place.root for name in found)
    local = place.fs.protocol in ("file", ("file", "local"))
    if not paths or not local or not all(map(_NAMEABLE.fullmatch, paths)):
        return None
    schema = arrow_schema(relation.columns)
    if not all(_has(pq.read_schema(path), schema) for path in paths[:MOST_FOOTERS]):
        return None
    wanted = ", ".join(f"{quote(field.name)} {spark_type(field.type)}" for field in schema)
    data = builder.session.read.schema(wanted).parquet(*(f"file://{path}" for path in paths))
    return replace(Frame(data, ()).select([quote(field.name) for field in schema]), of_files=True)


def _has(found: pa.Schema, schema: pa.Schema) -> bool:
    """Return True if a file has all columns, in the same types, and none of them is nested."""
    return all(
        found.get_field_index(field.name) >= 0
        and not pa.types.is_nested(field.type)
        and _plain(found.field(field.name).type) == field.type
        for field in schema
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.unit == "ms":
        return pa.timestamp("us", kind.tz)
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)


def _read(builder: FrameBuilder, relation: Scan) -> Frame:
    """Return a DataFrame of any bounded source. Spark's tasks read the splits that its enumerator assigns."""
    name, entry = ".".join(relation.path), relation.table
    keys, parts = entry.schema.primary_key, entry.partition_keys
    table = connectors.declare_table(name, entry.options, relation.columns, relation.metadata, keys, parts, True)
    table = replace(table, pruning=relation.pruning)
    stream = connectors.connector(name, entry.options).source(builder.env, table)
    chain = _chain(stream, name)
    source = chain[0]
    assert isinstance(source, SourceOperator)
    if not source.source.bounded:
        raise Untranslatable(f"the table {name}, which has no end")
    count = sql_session.default_parallelism(builder.session) * _SPLITS_A_CORE if source.source.parallel else 1
    schema = arrow_schema(relation.columns)
    names = new_names(len(schema))
    task = SourceTask(
        tuple(pickle_part(one, name, "-") for one in (*chain, FromRecords(relation.columns, (), False))),
        pickle.dumps(_assign_splits(source, count)),
        name,
        count,
        names,
        builder.surroundings,
    )
    numbers = builder.session.range(0, count, 1, count)
    return Frame(sql_session.map_partitions(numbers, task, declare_columns(names, schema)), names)


def _chain(stream: DataStream, name: str) -> list[Operator]:
    """Return the operators of a stream, from its source on, in order."""
    found: list[Operator] = []
    refs = stream.refs
    while True:
        if len(refs) != 1 or refs[0].tag is not None:
            raise Untranslatable(f"the table {name}, which is read in several streams")
        node = refs[0].node
        found.insert(0, node.operator)
        if isinstance(node.operator, SourceOperator):
            return found
        refs = tuple(node.inputs[0]) if len(node.inputs) == 1 else ()


def _assign_splits(source: SourceOperator, count: int) -> list[list[Any]]:
    """Return the payloads that the enumerator assigns to each reader, by number of the reader."""
    enumerator = source.source.enumerator()
    payloads: list[list[Any]] = [[] for _ in range(count)]
    if enumerator is None:
        return payloads
    if not isinstance(source.source, SplitSource):
        raise Untranslatable("a source whose records the driver hands out")
    try:
        while not enumerator.exhausted:
            for own, payload in zip(payloads, enumerator.assign(count, _MOST_ASSIGNED), strict=True):
                if payload is not None:
                    own.append(payload)
    finally:
        enumerator.close()
    return payloads


LEAVES: dict[type, Native] = {Values: values, StreamScan: stream_scan, Scan: scan}
