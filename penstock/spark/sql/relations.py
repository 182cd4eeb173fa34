"""Translation of relations to Spark SQL, if Spark gives them the same meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.spark.sessions import sql_session
from penstock.spark.sql.refusal import Untranslatable
from penstock.spark.sql.relation_frames import Frame, FrameBuilder, FrameStream, Native, frame_of
from penstock.spark.sql.spark_aggregates import aggregate_text, over_texts
from penstock.spark.sql.spark_expressions import FLOATS, is_same, text_of, type_name
from penstock.spark.sql.spark_windows import window_table
from penstock.table.logical.building import identity
from penstock.table.logical.kinds import JoinKind, SetKind
from penstock.table.logical.nodes import Aggregate, Expand, Join, Over, SetOperation, Sort, Watermark, WindowTable
from penstock.table.logical.optimised_nodes import Calc
from penstock.table.logical.rex import InputRef, Rex, SortKey, conjunction, conjuncts, refs, rewritten
from penstock.table.operators.base.output_form import OutputForm
from penstock.table.operators.base.sort_order import nulls_first
from penstock.table.operators.io.calc import Calc as CalcOperator
from penstock.table.operators.io.expand import set_id
from penstock.table.rules.join_conditions import join_keys
from penstock.table.types.arrow_forms import arrow_schema

JOINS = {"INNER": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full", "SEMI": "left_semi", "ANTI": "left_anti"}


# --- filters and projections ---
def calc(builder: FrameBuilder, relation: Calc) -> Frame | None:
    """Translate conditions and projections.

    The conditions that Spark SQL can evaluate come first, so that Spark need not read whole files. Our own kernels
    evaluate the rest.
    """
    frame = builder.frame(relation.input)
    rest = []
    for part in conjuncts(relation.condition):
        text = text_of(part, frame.names)
        if text is None:
            rest.append(part)
        else:
            frame = frame.where(text)
    texts = texts_of(relation.exprs, frame.names)
    if texts is not None and not rest:
        return frame.select(texts)
    return _by_kernels(builder, relation, frame, conjunction(rest))


def _by_kernels(builder: FrameBuilder, relation: Calc, frame: Frame, condition: Rex | None) -> Frame:
    """Build a calc with our own operator, which gets only the columns that it reads."""
    needed = [*relation.exprs, *([] if condition is None else [condition])]
    read = sorted({index for expr in needed for index in refs(expr)})
    places = {index: place for place, index in enumerate(read)}
    exprs = [_move_inputs(expr, places) for expr in relation.exprs]
    narrow = frame.select([frame.names[index] for index in read])
    below = FrameStream(builder.env, narrow, arrow_schema(tuple(relation.input.columns[index] for index in read)))
    moved = None if condition is None else _move_inputs(condition, places)
    operator = CalcOperator(exprs, moved, OutputForm(arrow_schema(relation.columns)), False, builder.settings.zone)
    return frame_of(builder.then(below, relation, "Calc", operator))


def _move_inputs(rex: Rex, places: dict[int, int]) -> Rex:
    return rewritten(rex, lambda one: replace(one, index=places[one.index]) if isinstance(one, InputRef) else None)


def texts_of(exprs: Sequence[Rex], names: Sequence[str]) -> list[str] | None:
    """Return expressions in Spark SQL, or None if Spark cannot express one of them."""
    found = [text_of(expr, names) for expr in exprs]
    known = [text for text in found if text is not None]
    return known if len(known) == len(found) else None


def watermark(builder: FrameBuilder, relation: Watermark) -> Frame:
    """Return the input unchanged: nothing is late in BATCH mode."""
    return builder.frame(relation.input)


# --- groups ---
def aggregate(builder: FrameBuilder, relation: Aggregate) -> Frame | None:
    """Translate GROUP BY and its aggregates."""
    frame = builder.frame(relation.input)
    types = relation.input.types()
    texts = [aggregate_text(call, frame.names, types) for call in relation.calls]
    known = [text for text in texts if text is not None]
    nothing = not relation.keys and not relation.calls
    if nothing or len(known) < len(texts) or not all(is_same(types[key]) for key in relation.keys):
        return None
    keys = [frame.names[key] for key in relation.keys]
    return _group(frame, keys, known)


def _group(frame: Frame, keys: list[str], texts: list[str]) -> Frame:
    if not texts:
        distinct = frame.select(keys)
        return Frame(distinct.data.distinct(), distinct.names)
    made = [f"made_{index}" for index in range(len(texts))]
    calls = [sql_session.column(f"{text} AS {name}") for text, name in zip(texts, made, strict=True)]
    data = frame.data.groupBy(*keys).agg(*calls)
    return Frame(data, ()).select([*keys, *made])


def expand(builder: FrameBuilder, relation: Expand) -> Frame | None:
    """Translate grouping sets, where every row appears once for each set."""
    frame = builder.frame(relation.input)
    types = relation.input.types()
    if not all(is_same(types[key]) for key in relation.keys):
        return None
    made = [f"key_{key}" for key in relation.keys]
    rows = ", ".join(_set_row(relation, one, frame.names, made) for one in relation.sets)
    data = frame.data.selectExpr(*frame.names, f"inline(array({rows}))")
    at = dict(zip(relation.keys, made, strict=True))
    columns = [at.get(index, name) for index, name in enumerate(frame.names[: len(types)])]
    return Frame(data, ()).select([*columns, "set_id"])


def _set_row(relation: Expand, chosen: Sequence[int], names: Sequence[str], made: Sequence[str]) -> str:
    types = relation.input.types()
    keys = [
        f"{names[key] if key in chosen else f'CAST(NULL AS {type_name(types[key])})'} AS {name}"
        for key, name in zip(relation.keys, made, strict=True)
    ]
    number = f"CAST({set_id(relation.keys, chosen)} AS {type_name(relation.columns[-1].type)}) AS set_id"
    return f"struct({', '.join([*keys, number])})"


# --- joins ---
def join(builder: FrameBuilder, relation: Join) -> Frame | None:
    """Translate a join. Our own kernels check the conditions of an inner join that Spark cannot express."""
    if relation.temporal is not None:
        raise Untranslatable("a join with the version that a row had at a time")
    frame, other = builder.frame(relation.left), builder.frame(relation.right)
    other = other.select(other.names)  # under new names, since both may be the same DataFrame
    own = [*frame.names[: len(relation.left.columns)]]
    names = [*own, *other.names[: len(relation.right.columns)]]
    parts, keys = _conditions(relation), join_keys(relation).left
    if any(isinstance(relation.left.columns[key].type, FLOATS) for key in keys):
        return None  # a comparison that treats NaN as Flink does is no join key for Spark
    texts = {number: text for number, part in enumerate(parts) if (text := text_of(part, names)) is not None}
    rest = [part for number, part in enumerate(parts) if number not in texts]
    if rest and (relation.kind != JoinKind.INNER or not texts):
        return None
    on = sql_session.column(" AND ".join(texts.values()) or "TRUE")
    whole = Frame(frame.data.join(other.data, on, JOINS[relation.kind]), ())
    kept = whole.select(own if relation.kind in {JoinKind.SEMI, JoinKind.ANTI} else names)
    return kept if not rest else _filter(builder, relation, kept, rest)


def _conditions(relation: Join) -> list[Rex]:
    """Return the conditions that a pair of rows has to fulfil."""
    keys = join_keys(relation)
    return keys.rest if relation.null_aware and not keys.left else conjuncts(relation.condition)


def _filter(builder: FrameBuilder, relation: Join, pairs: Frame, rest: list[Rex]) -> Frame:
    """Keep the pairs of an inner join that fulfil the conditions that only our kernels can check."""
    schema = arrow_schema(relation.columns)
    operator = CalcOperator(identity(relation), conjunction(rest), OutputForm(schema), False, builder.settings.zone)
    return frame_of(builder.then(FrameStream(builder.env, pairs, schema), relation, "Join Condition", operator))


# --- sets ---
def set_operation(builder: FrameBuilder, relation: SetOperation) -> Frame | None:
    """Translate UNION, INTERSECT and EXCEPT."""
    if relation.kind == SetKind.UNION:
        return _union(builder, relation)
    if not all(is_same(kind) for part in relation.parts for kind in part.types()):
        return None
    built = [builder.frame(part) for part in relation.parts]
    whole = built[0].data
    for frame in built[1:]:
        if relation.kind == SetKind.INTERSECT:
            whole = whole.intersectAll(frame.data) if relation.all else whole.intersect(frame.data)
        else:
            whole = whole.exceptAll(frame.data) if relation.all else whole.subtract(frame.data)
    return Frame(whole, built[0].names)


def _union(builder: FrameBuilder, relation: SetOperation) -> Frame | None:
    """Append all rows, whose columns are matched by position."""
    kinds = arrow_schema(relation.columns).types
    if any(arrow_schema(part.columns).types != kinds for part in relation.parts):
        return None
    built = [builder.frame(part) for part in relation.parts]
    whole = built[0].data
    for frame in built[1:]:
        whole = whole.union(frame.data)
    return Frame(whole, built[0].names)


# --- order ---
def sort(builder: FrameBuilder, relation: Sort) -> Frame | None:
    """Translate ORDER BY, OFFSET and LIMIT."""
    types = relation.input.types()
    if not all(is_same(types[key.index]) or isinstance(types[key.index], FLOATS) for key in relation.keys):
        return None
    frame = builder.frame(relation.input)
    data = frame.data
    if relation.keys:
        data = data.orderBy(*(_sort_key(data[frame.names[key.index]], key) for key in relation.keys))
    if relation.offset:
        data = data.offset(relation.offset)
    if relation.limit is not None:
        data = data.limit(relation.limit)
    return Frame(data, frame.names)


def _sort_key(column: Any, key: SortKey) -> Any:
    word = f"{'desc' if key.descending else 'asc'}_nulls_{'first' if nulls_first(key) else 'last'}"
    return getattr(column, word)()


def over(builder: FrameBuilder, relation: Over) -> Frame | None:
    """Translate OVER windows."""
    types = relation.input.types()
    frame = builder.frame(relation.input)
    own = frame.names[: len(types)]
    texts: list[str] = []
    for window in relation.windows:
        found = over_texts(window, own, types)
        if found is None:
            return None
        texts += found
    return frame.select([*own, *texts])


NATIVES: dict[type, Native] = {
    Calc: calc,
    Watermark: watermark,
    Aggregate: aggregate,
    Expand: expand,
    Join: join,
    SetOperation: set_operation,
    Sort: sort,
    Over: over,
    WindowTable: window_table,
}
