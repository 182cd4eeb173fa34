"""The queries whose savepoints are in `savepoints/before-0.2-sql-…`. They must not change: uids follow from them."""

from __future__ import annotations

import random
from typing import Any

from penstock.common import Row, RowKind, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner
from penstock.datastream import DataStream, StreamExecutionEnvironment
from penstock.table import AggregateFunction, DataTypes, Schema, StreamTableEnvironment
from penstock.table.changelog_mode import ChangelogMode
from penstock.table.expression.function_declarations import udaf
from penstock.testing import scripted

ROWS, START = 60, 1_709_283_600_000
KINDS = {"+I": RowKind.INSERT, "-U": RowKind.UPDATE_BEFORE, "+U": RowKind.UPDATE_AFTER, "-D": RowKind.DELETE}
EVENT = Types.ROW_NAMED(["k", "n", "v", "at"], [Types.STRING(), Types.INT(), Types.INT(), Types.LONG()])
CHANGE = Types.ROW_NAMED(["id", "k", "v"], [Types.INT(), Types.STRING(), Types.INT()])
RATE = Types.ROW_NAMED(["k", "rate", "at"], [Types.STRING(), Types.INT(), Types.LONG()])


class FromColumn(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value["at"]


class Spread(AggregateFunction):
    """A user's aggregate: largest minus smallest."""

    def create_accumulator(self):
        return [None, None]

    def accumulate(self, accumulator, value):
        known = [bound for bound in accumulator if bound is not None]
        accumulator[0], accumulator[1] = min([*known, value]), max([*known, value])

    def get_value(self, accumulator):
        return accumulator[1] - accumulator[0]


def events(seed: int) -> list[Row]:
    """Events in order of time, two seconds apart at the mean."""
    chance, now, made = random.Random(seed), START, []
    for number in range(ROWS):
        now += chance.choice([0, 1000, 1000, 2000, 6000])
        made.append(Row(k=chance.choice("abc"), n=number, v=chance.randrange(6), at=now))
    return made


def rates() -> list[Row]:
    chance = random.Random(3)
    return [Row(k=chance.choice("abc"), rate=number, at=START + 3000 * number) for number in range(40)]


def changes(with_before: bool) -> list[Row]:
    """A changelog of rows with an id, with or without the rows that updates replace."""
    chance, known, made = random.Random(4), dict[int, tuple[Any, ...]](), []
    for _ in range(ROWS):
        number = chance.randrange(9)
        new = (number, chance.choice("abc"), chance.randrange(20))
        old = known.pop(number, None)
        if old is None:
            made.append(("+I", new))
        elif chance.random() < 0.3:
            made.append(("-D", old))
            continue
        else:
            made += [("-U", old), ("+U", new)] if with_before else [("+U", new)]
        known[number] = new
    return [Row.of_kind(KINDS[kind], *values) for kind, values in made]


def tables(t_env: StreamTableEnvironment, env: StreamExecutionEnvironment) -> None:
    timed = Schema.new_builder().column("k", "STRING").column("n", "INT").column("v", "INT")
    timed = timed.column_by_metadata("ts", DataTypes.TIMESTAMP_LTZ(3), "timestamp")
    timed = timed.watermark("ts", "SOURCE_WATERMARK()").build()
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(FromColumn())
    for name, seed in (("clicks", 1), ("others", 2)):
        stream = scripted(env, *events(seed), type_info=EVENT).uid(name)
        stream = stream.assign_timestamps_and_watermarks(times).uid(f"{name} times").set_parallelism(1)
        t_env.create_temporary_view(name, stream, timed)
    stream = scripted(env, *rates(), type_info=RATE).uid("rates")
    stream = stream.assign_timestamps_and_watermarks(times).uid("rates times").set_parallelism(1)
    versioned = Schema.new_builder().column("k", "STRING NOT NULL").column("rate", "INT")
    versioned = versioned.column_by_metadata("ts", DataTypes.TIMESTAMP_LTZ(3), "timestamp")
    versioned = versioned.watermark("ts", "SOURCE_WATERMARK()").primary_key("k").build()
    t_env.create_temporary_view("rates", t_env.from_changelog_stream(stream, versioned, ChangelogMode.upsert()))
    plain = Schema.new_builder().column("id", "INT NOT NULL").column("k", "STRING").column("v", "INT")
    stream = scripted(env, *changes(True), type_info=CHANGE).uid("changes")
    t_env.create_temporary_view("changes", t_env.from_changelog_stream(stream, plain.build()))
    stream = scripted(env, *changes(False), type_info=CHANGE).uid("upserts")
    keyed = plain.primary_key("id").build()
    t_env.create_temporary_view("upserts", t_env.from_changelog_stream(stream, keyed, ChangelogMode.upsert()))
    t_env.create_temporary_function("spread", udaf(Spread(), result_type="INT", accumulator_type="ARRAY<INT>"))


def ranked(table: str, keys: str, order: str, limit: str) -> str:
    number = f"ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {order}) AS rn"
    return f"SELECT * FROM (SELECT *, {number} FROM {table}) WHERE rn <= {limit}"


def windows(table_function: str, aggregates: str = "COUNT(*) AS c, SUM(v) AS s, MAX(v) AS m") -> str:
    columns = "k, window_start, window_end"
    return f"SELECT {columns}, {aggregates} FROM TABLE({table_function}) GROUP BY {columns}"


CLICKS = "TABLE clicks, DESCRIPTOR(ts)"
TUMBLE = f"TUMBLE({CLICKS}, INTERVAL '20' SECOND)"
EQUAL = "SELECT c.k, c.n, o.n AS m FROM clicks c {} JOIN others o ON c.k = o.k AND c.v = o.v"
NEAR = "o.ts BETWEEN c.ts - INTERVAL '4' SECOND AND c.ts + INTERVAL '4' SECOND"
BOTH = "a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end"
QUERIES = {
    # aggregates
    "group": "SELECT k, COUNT(*) AS c, SUM(v) AS s, MIN(v) AS l, MAX(v) AS h, AVG(v) AS a FROM clicks GROUP BY k",
    "group all": "SELECT COUNT(*) AS c, SUM(v) AS s FROM clicks",
    "group first": "SELECT k, FIRST_VALUE(n) AS f, LAST_VALUE(n) AS l FROM clicks GROUP BY k",
    "group distinct": "SELECT k, COUNT(DISTINCT v) AS c, SUM(DISTINCT v) AS s FROM clicks GROUP BY k",
    "group changes": "SELECT k, COUNT(*) AS c, MIN(v) AS l, MAX(v) AS h, COUNT(DISTINCT v) AS d FROM changes "
    "GROUP BY k",
    "group groups": "SELECT c, COUNT(*) AS g FROM (SELECT v, COUNT(*) AS c FROM clicks GROUP BY v) GROUP BY c",
    "group user": "SELECT k, spread(v) AS s FROM clicks GROUP BY k",
    "group filter": "SELECT k, COUNT(*) FILTER (WHERE v > 2) AS c, STDDEV_POP(v) AS d FROM clicks GROUP BY k",
    "distinct": "SELECT DISTINCT k, v FROM clicks",
    # order
    "top": ranked("clicks", "k", "v DESC, n", "2"),
    "top without number": f"SELECT k, n, v FROM ({ranked('clicks', 'k', 'v DESC, n', '3')})",
    "top changes": ranked("changes", "k", "v DESC, id", "2"),
    "top counts": ranked("(SELECT k, v, COUNT(*) AS c FROM clicks GROUP BY k, v)", "k", "c DESC, v", "2"),
    "first": f"SELECT k, v, n FROM ({ranked('clicks', 'k, v', 'ts', '1')})",
    "last": f"SELECT k, v FROM ({ranked('clicks', 'k, v', 'ts DESC', '1')})",
    "limit": "SELECT k, v, id FROM changes ORDER BY v DESC, id LIMIT 4",
    "sort": "SELECT ts, n FROM clicks ORDER BY ts, n",
    # joins
    "join": EQUAL.format("INNER"),
    "left": EQUAL.format("LEFT"),
    "full": EQUAL.format("FULL"),
    "join changes": "SELECT c.n, d.id, d.v FROM clicks c JOIN changes d ON c.k = d.k",
    "join upserts": "SELECT a.id, a.v, b.v AS w FROM changes a LEFT JOIN upserts b ON a.id = b.id",
    "semi": "SELECT k, n FROM clicks WHERE v IN (SELECT v FROM changes)",
    "anti": "SELECT k, n FROM clicks c WHERE NOT EXISTS (SELECT 1 FROM changes d WHERE d.k = c.k AND d.v = c.v)",
    "interval": f"SELECT c.k, c.n, o.n AS m FROM clicks c JOIN others o ON c.k = o.k AND {NEAR}",
    "interval full": f"SELECT c.n, o.n AS m FROM clicks c FULL JOIN others o ON c.k = o.k AND c.v = o.v AND {NEAR}",
    "temporal": "SELECT c.k, c.n, r.rate FROM clicks c LEFT JOIN rates FOR SYSTEM_TIME AS OF c.ts AS r ON c.k = r.k",
    "window join": f"SELECT a.n, b.n AS m FROM (SELECT * FROM TABLE({TUMBLE})) a JOIN (SELECT * FROM "
    f"TABLE({TUMBLE.replace('clicks', 'others')})) b ON {BOTH}",
    # windows
    "tumble": windows(TUMBLE),
    "hop": windows(f"HOP({CLICKS}, INTERVAL '10' SECOND, INTERVAL '30' SECOND)"),
    "cumulate": windows(f"CUMULATE({CLICKS}, INTERVAL '10' SECOND, INTERVAL '40' SECOND)"),
    "session": windows("SESSION(TABLE clicks PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND)"),
    "tumble distinct": windows(TUMBLE, "COUNT(DISTINCT v) AS d, spread(v) AS s"),
    "window top": ranked(f"TABLE({TUMBLE})", "window_start, window_end, k", "v DESC, n", "1"),
    "window top counts": ranked(f"({windows(TUMBLE)})", "window_start, window_end", "c DESC, k", "1"),
    "group window": "SELECT k, SESSION_START(ts, INTERVAL '5' SECOND) AS b, COUNT(*) AS c, SUM(v) AS s FROM clicks "
    "GROUP BY k, SESSION(ts, INTERVAL '5' SECOND)",
    # rows with those before them
    "over rows": "SELECT k, n, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS s "
    "FROM clicks",
    "over range": "SELECT k, n, COUNT(*) OVER w AS c, MAX(v) OVER w AS m FROM clicks WINDOW w AS (PARTITION BY k "
    "ORDER BY ts RANGE BETWEEN INTERVAL '9' SECOND PRECEDING AND CURRENT ROW)",
    "over all": "SELECT k, n, AVG(v) OVER w AS a, MIN(v) OVER w AS m FROM clicks "
    "WINDOW w AS (PARTITION BY k ORDER BY ts)",
    "match": "SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.n AS a, LAST(B.n) AS b, "
    "COUNT(B.n) AS c, C.n AS d AFTER MATCH SKIP TO NEXT ROW PATTERN (A B+ C) WITHIN INTERVAL '40' SECOND "
    "DEFINE B AS B.v <= A.v + COUNT(B.v), C AS C.v > LAST(B.v))",
    # changes as they are
    "upserts": "SELECT * FROM upserts",
    "upserts of a": "SELECT id, v FROM upserts WHERE k = 'a'",
    "union": "SELECT k, v FROM clicks UNION SELECT k, v FROM others",
    "intersect": "SELECT k, v FROM clicks INTERSECT SELECT k, v FROM others",
    "except all": "SELECT k, v FROM clicks EXCEPT ALL SELECT k, v FROM others",
}


def shown(name: str, row: Row) -> tuple[Any, ...]:
    """A change as plain values: how often the row is there, the query, and its columns."""
    values = [value if value is None or isinstance(value, int | float) else str(value) for value in row]
    return (1 if row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER) else -1, name, *values)


def build(env: StreamExecutionEnvironment) -> DataStream:
    """The changes of all queries in one stream."""
    t_env = StreamTableEnvironment.create(env)
    t_env.get_config().set_local_timezone("UTC")
    tables(t_env, env)
    streams = []
    for name, query in QUERIES.items():
        stream = t_env.to_changelog_stream(t_env.sql_query(query))
        streams.append(stream.map(lambda row, name=name: shown(name, row)).uid(f"shown {name}"))
    first, *others = streams
    return first.union(*others)
