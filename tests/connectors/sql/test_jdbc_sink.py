"""What a JdbcSink writes, and when."""

import datetime
from decimal import Decimal
from types import SimpleNamespace

import pytest

from penstock.common import Instant, Row, RowKind, Types
from penstock.datastream.connectors import jdbc
from penstock.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from penstock.errors import JobFailed, TypeMismatch, UnsupportedOperation

PEOPLE = Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.INT()])
INSERT = "INSERT INTO people (name, age) VALUES (?, ?)"
CREATE = "CREATE TABLE people (name VARCHAR(50) PRIMARY KEY, age INTEGER NOT NULL)"
ALL = "SELECT name, age FROM people ORDER BY name"


class Context:
    """A writer's context, whose time a test sets."""

    def __init__(self, subtask=0):
        self.now = 1000
        self.uid = "sink"
        self.runtime = SimpleNamespace(get_index_of_this_subtask=lambda: subtask)


def writer(store, context=None, sql=INSERT, type_info=PEOPLE, **execution):
    return JdbcSink.sink(sql, type_info, store.options, JdbcExecutionOptions(**execution)).create_writer(
        context or Context(), []
    )


@pytest.mark.parametrize("once", [False, True])
def test_rows_tuples_and_dicts_are_written(store, env, once):
    store.run(CREATE)
    values = [Row("ann", 31), ("bo", 7), Row(age=5, name="cy"), Row(name="di", age=9)]
    make = JdbcSink.exactly_once_sink if once else JdbcSink.sink
    env.from_collection(values).add_sink(make(INSERT, PEOPLE, store.options))
    env.execute()
    assert store.rows(ALL) == [("ann", 31), ("bo", 7), ("cy", 5), ("di", 9)]


def test_the_users_own_upsert(store, env):
    store.run(CREATE, "INSERT INTO people VALUES ('ann', 1)")
    sql = f"{INSERT} ON CONFLICT (name) DO UPDATE SET age = excluded.age + people.age"
    env.from_collection([("ann", 10), ("bo", 2), ("bo", 3)], PEOPLE).sink_to(JdbcSink.sink(sql, PEOPLE, store.options))
    env.execute()
    assert store.rows(ALL) == [("ann", 11), ("bo", 5)]


@pytest.mark.parametrize("once", [None, JdbcExactlyOnceOptions()])
def test_upsert_keeps_the_last_of_each_key_and_deletes(store, env, once):
    store.run(CREATE, "INSERT INTO people VALUES ('gone', 1), ('ann', 1), ('back', 0)")
    changes = [
        Row("ann", 2),
        Row.of_kind(RowKind.UPDATE_BEFORE, "ann", 2),
        Row.of_kind(RowKind.UPDATE_AFTER, "ann", 3),
        Row.of_kind(RowKind.DELETE, "gone", 1),
        Row.of_kind(RowKind.DELETE, "back", 0),
        Row("bo", 4),
        Row("back", 6),
        Row("brief", 1),
        Row.of_kind(RowKind.DELETE, "brief", 1),
    ]
    sink = JdbcSink.upsert("people", None, ["name"], PEOPLE, store.options, exactly_once_options=once)
    env.from_collection(changes, PEOPLE).sink_to(sink)
    env.execute()
    assert store.rows(ALL) == [("ann", 3), ("back", 6), ("bo", 4)]


def test_upsert_into_keys_alone_and_names_that_need_quotes(store, env):
    store.run('CREATE TABLE "Odd Name" ("select" INTEGER, "K" INTEGER, PRIMARY KEY ("select", "K"))')
    sink = JdbcSink.upsert("Odd Name", ["select", "K"], ["K", "select"], None, store.options)
    env.from_collection([(1, 2), (1, 2), (2, 2)]).sink_to(sink)
    env.execute()
    assert store.rows('SELECT * FROM "Odd Name" ORDER BY 1') == [(1, 2), (2, 2)]


def test_every_type(store, env):
    store.run(
        "CREATE TABLE kinds (b BOOLEAN, i BIGINT, d DOUBLE PRECISION, n NUMERIC(10, 2), s TEXT, x BLOB, day DATE,"
        " t TIME, ts TIMESTAMP, moment TIMESTAMP WITH TIME ZONE)".replace(
            "BLOB", "BYTEA" if store.options.dialect == "postgresql" else "BLOB"
        )
    )
    types = [Types.BOOLEAN(), Types.LONG(), Types.DOUBLE(), Types.BIG_DEC(), Types.STRING()]
    types += [Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP()]
    row = Types.ROW([*types, Types.INSTANT()])
    day, time = datetime.date(2024, 2, 29), datetime.time(23, 59, 59, 5)
    value = Row(True, 2**62, 0.1, Decimal("12.30"), "100% ?:x", b"\0\xff", day, time)
    value = Row(*value, datetime.datetime(2024, 2, 29, 1, 2, 3, 4), Instant(1_700_000_000, 123_456_000))
    nothing = Row(*[None] * 10)
    sink = JdbcSink.sink(f"INSERT INTO kinds VALUES ({', '.join('?' * 10)})", row, store.options)
    env.from_collection([value, nothing], row).sink_to(sink)
    env.execute()
    source = jdbc.JdbcSource(store.options, "SELECT * FROM kinds WHERE i IS NOT NULL", row, key="i")
    from penstock.common import WatermarkStrategy

    back = env.from_source(source, WatermarkStrategy.no_watermarks(), "kinds").execute_and_collect()
    with back as results:
        assert [tuple(found) for found in results] == [tuple(value)]
    assert store.rows("SELECT COUNT(*) FROM kinds WHERE i IS NULL AND moment IS NULL") == [(1,)]


def test_one_field_needs_no_tuple(store, env):
    store.run("CREATE TABLE words (word TEXT)")
    env.from_collection(["a", "b"], Types.STRING()).sink_to(
        JdbcSink.sink("INSERT INTO words VALUES (?)", Types.STRING(), store.options)
    )
    env.execute()
    assert sorted(store.rows("SELECT word FROM words")) == [("a",), ("b",)]


# --- when ---
def test_a_batch_is_written_when_it_is_full(sqlite_store):
    sqlite_store.run(CREATE)
    writing = writer(sqlite_store, batch_size=3)
    for number in range(4):
        writing.write((f"p{number}", number), None)
    assert len(sqlite_store.rows(ALL)) == 3
    writing.write_all([(f"q{number}", number) for number in range(9)], None, None)
    assert len(sqlite_store.rows(ALL)) == 12
    writing.flush(False)
    assert len(sqlite_store.rows(ALL)) == 13


def test_a_batch_is_written_when_it_has_waited_long_enough(sqlite_store):
    sqlite_store.run(CREATE)
    context = Context()
    writing = writer(sqlite_store, context, batch_interval_ms=50)
    assert writing.next_due() is None
    writing.write(("ann", 1), None)
    context.now = 1020
    writing.write(("bo", 2), None)
    assert writing.next_due() == 1050
    writing.end_epoch(1049)
    assert sqlite_store.rows(ALL) == []
    writing.end_epoch(1050)
    assert len(sqlite_store.rows(ALL)) == 2
    assert writing.next_due() is None
    context.now = 1100
    writing.write(("cy", 3), None)
    assert writing.next_due() == 1150


def test_without_size_and_interval_only_a_checkpoint_ends_a_batch(sqlite_store):
    sqlite_store.run(CREATE)
    writing = writer(sqlite_store, batch_size=0)
    writing.write_all([(f"p{number}", number) for number in range(6000)], None, None)
    writing.end_epoch(10**12)
    assert sqlite_store.rows(ALL) == [] and writing.next_due() is None
    writing.flush(False)
    assert len(sqlite_store.rows(ALL)) == 6000


def test_a_batch_is_one_transaction(store):
    store.run(CREATE)
    writing = writer(store)
    writing.write_all([("ann", 1), ("bo", None)], None, None)
    with pytest.raises(Exception, match="bo"):
        writing.flush(False)
    assert store.rows(ALL) == []


# --- mistakes in the program ---
def test_mistakes_that_building_finds():
    options = JdbcConnectionOptions("jdbc:sqlite:x.db")
    with pytest.raises(ValueError, match="does not have one field for each of the 1 placeholders"):
        JdbcSink.sink("INSERT INTO t VALUES (?)", PEOPLE, options)
    with pytest.raises(TypeError, match="jdbc_connection_options must be a JdbcConnectionOptions, not 'jdbc:sqlite:x'"):
        JdbcSink.sink("INSERT INTO t VALUES (?, ?)", PEOPLE, "jdbc:sqlite:x")
    with pytest.raises(TypeError, match="type_info"):
        JdbcSink.sink("INSERT INTO t VALUES (?, ?)", "ROW", options)
    with pytest.raises(ValueError, match="must be some of the columns"):
        JdbcSink.upsert("t", ["a", "b"], ["c"], None, options)
    with pytest.raises(TypeError, match="key_columns must be a Sequence of which each element is a string"):
        JdbcSink.upsert("t", ["a", "b"], "a", None, options)
    with pytest.raises(ValueError, match="row type that names them"):
        JdbcSink.upsert("t", None, ["a"], None, options)
    with pytest.raises(UnsupportedOperation, match="not for mysql"):
        JdbcSink.upsert("t", ["a"], ["a"], None, JdbcConnectionOptions("jdbc:mysql://h/d"))
    with pytest.raises(UnsupportedOperation, match="exactly-once delivery is available for PostgreSQL and SQLite"):
        JdbcSink.exactly_once_sink("DELETE FROM t WHERE a = ?", None, JdbcConnectionOptions("jdbc:mysql://h/d"))


@pytest.mark.parametrize("once", [False, True])
def test_a_record_of_another_type_is_named(sqlite_store, env, once):
    sqlite_store.run(CREATE)
    make = JdbcSink.exactly_once_sink if once else JdbcSink.sink
    env.from_collection([("ann", 1), ("bo", "old")]).sink_to(make(INSERT, PEOPLE, sqlite_store.options))
    with pytest.raises(JobFailed, match="'old' \\(str\\) does not fit INT"):
        env.execute()


@pytest.mark.parametrize("bad", [("ann",), ("ann", 1, 2), "ab", 7, None])
def test_without_a_type_the_number_of_fields_is_checked(sqlite_store, bad):
    sqlite_store.run(CREATE)
    with pytest.raises(TypeMismatch, match="expected"):
        writer(sqlite_store, type_info=None).write(bad, None)
