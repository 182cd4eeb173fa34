"""UNNEST, table functions, functions of users, and MATCH_RECOGNIZE."""

from __future__ import annotations

from typing import Any

from penstock.common import Row
from penstock.table.expression.function_declarations import AggregateFunction, TableAggregateFunction, udaf, udtaf, udtf
from penstock.table.logical.building import aggregate
from penstock.table.logical.nodes import Column, Correlate, Match, MatchSpec, TableAggregate
from penstock.table.logical.rex import AggregateCall, Call, InputRef, Literal, Rex, SortKey
from penstock.table.logical.row_patterns import PatternSequence, PatternVariable
from penstock.table.types.data_types import ArrayType, DataTypes, IntType, MapType, NullType, RowType
from tests.table.runtime.table_programs import INT, STRING, call, changes, environment, final, run, values
from tests.table.runtime.test_windows import EXACT, events


def test_unnest_arrays_and_maps() -> None:
    table = values([(1, [5, None]), (2, []), (3, None)], id=INT, xs=ArrayType(INT))
    made = Call(RowType([("x", INT)]), "UNNEST", (table.ref(1),))
    columns = (*table.columns, Column("x", INT))
    assert [row[1::2] for row in run(Correlate(columns, table, made))] == [(1, 5), (1, None)]
    padded = [row[1::2] for row in run(Correlate(columns, table, made, outer=True))]
    assert padded == [(1, 5), (1, None), (2, None), (3, None)]
    maps = values([(1, {"a": 1, "b": 2})], id=INT, m=MapType(STRING, INT))
    made = Call(RowType([("k", STRING), ("v", INT)]), "UNNEST", (maps.ref(1),))
    columns = (*maps.columns, Column("k", STRING), Column("v", INT))
    assert [row[3:] for row in run(Correlate(columns, maps, made))] == [("a", 1), ("b", 2)]


@udtf(result_types=[DataTypes.STRING(), DataTypes.INT()])
def letters(word: str | None) -> Any:
    for index, letter in enumerate(word or ""):
        yield letter, index


def test_a_table_function_may_give_nothing() -> None:
    table = values([("ab",), (None,)], word=STRING)
    made = Call(letters.result_type, "LETTERS", (table.ref(0),), letters)
    columns = (*table.columns, Column("c", STRING), Column("i", INT))
    condition = call("<", InputRef(INT, 2), Literal(IntType(False), 1))
    assert run(Correlate(columns, table, made, outer=True, condition=condition)) == [
        ("+I", "ab", "a", 0),
        ("+I", None, None, None),
    ]


class WeightedMean(AggregateFunction):
    def create_accumulator(self) -> Row:
        return Row(0, 0)

    def accumulate(self, accumulator: Row, value: int, weight: int) -> None:
        accumulator[0] += value * weight
        accumulator[1] += weight

    def retract(self, accumulator: Row, value: int, weight: int) -> None:
        accumulator[0] -= value * weight
        accumulator[1] -= weight

    def get_value(self, accumulator: Row) -> float | None:
        return accumulator[0] / accumulator[1] if accumulator[1] else None


def test_an_aggregate_of_the_user_takes_rows_back() -> None:
    env = environment()
    log = [("+I", "a", 10, 1), ("+I", "a", 20, 3), ("-D", "a", 10, 1), ("+I", "b", 5, 2), ("-U", "a", 20, 3),
           ("+U", "a", 30, 3), ("-D", "b", 5, 2)]  # fmt: skip
    mean = udaf(WeightedMean(), result_type=DataTypes.DOUBLE(), accumulator_type=DataTypes.STRING())
    plan = aggregate(
        changes(env, log, k=STRING, v=INT, w=INT),
        [0],
        [AggregateCall("MEAN", (1, 2), DataTypes.DOUBLE(), "m", udf=mean)],
    )
    assert final(run(plan, env, epoch_records=1)) == [("a", 30.0)]


class Top2(TableAggregateFunction):
    def create_accumulator(self) -> list[Any]:
        return []

    def accumulate(self, accumulator: list[Any], value: int) -> None:
        accumulator.append(value)
        accumulator.sort(reverse=True)
        del accumulator[2:]

    def emit_value(self, accumulator: list[Any]) -> Any:
        yield from (Row(rank, value) for rank, value in enumerate(accumulator))


def test_a_table_aggregate_takes_its_rows_back() -> None:
    table = values([("a", 1), ("a", 5), ("b", 2), ("a", 3)], k=STRING, v=INT)
    top = udtaf(Top2(), result_type=RowType([("rank", INT), ("v", INT)]), accumulator_type=ArrayType(INT))
    columns = (Column("k", STRING), Column("rank", INT), Column("v", INT))
    plan = TableAggregate(columns, table, (0,), AggregateCall("TOP", (1,), top.result_type, udf=top))
    assert final(run(plan, epoch_records=1)) == [("a", 0, 5), ("a", 1, 3), ("b", 0, 2)]
    assert final(run(plan, batch=True)) == [("a", 0, 5), ("a", 1, 3), ("b", 0, 2)]


# --- MATCH_RECOGNIZE ---
TICKS = [(1, "acme", 12), (2, "acme", 17), (3, "zorg", 5), (4, "acme", 13), (5, "acme", 16), (6, "zorg", 4),
         (7, "acme", 25), (8, "acme", 2), (9, "zorg", 3), (10, "acme", 4), (11, "acme", 10), (12, "zorg", 9),
         (13, "acme", 15), (14, "zorg", 8), (15, "acme", 25), (16, "acme", 11)]  # fmt: skip


def word(text: str) -> Literal:
    return Literal(NullType(), text)


def last(variable: str, offset: int = 0, first: bool = False) -> Rex:
    return Call(INT, "FIRST" if first else "LAST", (word(variable), InputRef(INT, 2), Literal(IntType(False), offset)))


def matches(pattern: Any, defines: Any, measures: Any, skip: str = "PAST LAST ROW") -> list[tuple[Any, ...]]:
    table = events(TICKS, sym=STRING, price=INT)
    spec = MatchSpec((1,), (SortKey(0),), pattern, tuple(defines), tuple(measures), (skip, None))
    columns = (Column("sym", STRING), *(Column(name, rex.type) for name, rex in measures))
    return [row[1:] for row in run(Match(columns, table, spec), **EXACT)]


def var(name: str, low: int = 1, high: int | None = 1, greedy: bool = True) -> PatternVariable:
    return PatternVariable(name, low, high, greedy)


def test_falling_prices_that_rise_again() -> None:
    falls = call(
        "OR",
        call("AND", call("IS NULL", last("DOWN", 1)), call("<", last("DOWN"), last("A"))),
        call("<", last("DOWN"), last("DOWN", 1)),
    )
    found = matches(
        PatternSequence((var("A"), var("DOWN", 1, None), var("UP"))),
        [("DOWN", falls), ("UP", call(">", last("UP"), last("DOWN")))],
        [("low", last("DOWN")), ("after", last("UP")), ("twice", call("*", last("UP"), Literal(IntType(False), 2)))],
    )
    assert sorted(found) == [("acme", 2, 4, 8), ("acme", 13, 16, 32), ("zorg", 3, 9, 18)]


def test_every_row_may_begin_a_match() -> None:
    found = matches(
        PatternSequence((var("A"), var("B"))), [("B", call(">", last("B"), last("A")))],
        [("a", last("A")), ("b", last("B"))], "TO NEXT ROW",
    )  # fmt: skip
    expected = [("acme", 12, 17), ("acme", 13, 16), ("acme", 16, 25), ("acme", 2, 4), ("acme", 4, 10)]
    assert sorted(found) == sorted([*expected, ("acme", 10, 15), ("acme", 15, 25), ("zorg", 3, 9)])


def test_aggregates_over_variables() -> None:
    total = Call(INT, "MATCH_AGG", (word("SUM"), word("X"), word("ALL"), InputRef(INT, 2)))
    found = matches(
        PatternSequence((var("X", 2, None, False), var("Z"))),
        [
            ("X", call(">", last("X"), Literal(IntType(False), 2))),
            ("Z", call(">", last("Z"), Literal(IntType(False), 10))),
        ],
        [("total", total), ("z", last("Z"))],
    )
    assert ("acme", 29, 13) in found


def test_a_table_aggregate_over_windows_comes_when_they_end() -> None:
    from penstock.table.logical.nodes import ROWTIME, GroupWindow
    from penstock.table.types.data_types import TimestampType
    from tests.table.runtime.test_windows import at

    table = events([(1, "a", 1), (2, "a", 5), (3, "a", 3), (12, "a", 2), (25, "b", 4)], k=STRING, v=INT)
    top = udtaf(Top2(), result_type=RowType([("rank", INT), ("v", INT)]), accumulator_type=ArrayType(INT))
    bound = TimestampType(3, False)
    made = (Column("k", STRING), Column("rank", INT), Column("v", INT), Column("e", bound))
    window = GroupWindow(
        (Column("k", STRING), Column("e", bound, ROWTIME)), table, "TUMBLE", 0, 10_000, 0, (1,), (), ("end",)
    )
    plan = TableAggregate(made, table, (1,), AggregateCall("TOP", (2,), top.result_type, udf=top), window)
    assert run(plan, **EXACT) == [
        ("+I", "a", 0, 5, at(10)), ("+I", "a", 1, 3, at(10)), ("+I", "a", 0, 2, at(20)), ("+I", "b", 0, 4, at(30)),
    ]  # fmt: skip
