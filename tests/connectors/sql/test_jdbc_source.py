"""What a JdbcSource reads: every row once, in parts, from wherever it was left."""

import asyncio
import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Row, Types, WatermarkStrategy
from penstock.datastream import OutputTag
from penstock.datastream.connectors.base import BadRecords
from penstock.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcLookup,
    JdbcNumericBetweenParametersProvider,
    JdbcSink,
    JdbcSource,
)
from penstock.errors import JobFailed, SchemaMismatch, TypeMismatch, UndecodableRecord
from penstock.testing import in_process

NUMBERS = Types.ROW_NAMED(["id", "word"], [Types.LONG(), Types.STRING()])
COUNT = 57


@pytest.fixture
def numbers(store):
    store.run("CREATE TABLE numbers (id INTEGER PRIMARY KEY, word TEXT, grp INTEGER)")
    rows = ", ".join(f"({n * 3}, 'w{n}%', {n % 4})" for n in range(COUNT))
    store.run(f"INSERT INTO numbers VALUES {rows}".replace("%", "%%" if store.options.dialect == "postgresql" else "%"))
    return store


def collected(env, source, **settings):
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "rows", **settings)
    with stream.execute_and_collect() as results:
        return list(results)


def read_all(source, most=10, restart_every=None):
    """Everything, through readers that are replaced from time to time."""
    splits, values, fetches = source.create_enumerator().discover(), [], 0
    reader = source.create_reader(None)
    reader.add_splits(splits)
    while splits:
        try:
            for part in reader.fetch(most, 0):
                values += part.values
        except Exception:
            reader.close()
            raise
        fetches += 1
        splits = reader.snapshot_state()
        if restart_every and fetches % restart_every == 0:
            reader.close()
            reader = source.create_reader(None)
            reader.add_splits(pickle.loads(pickle.dumps(splits)))
    reader.close()
    return values


def test_rows_have_the_names_of_the_columns(numbers, env):
    source = JdbcSource(numbers.options, "SELECT id, word FROM numbers WHERE word LIKE '%5_!%' ESCAPE '!';", key="id")
    assert collected(env, source) == [Row(id=n * 3, word=f"w{n}%") for n in range(50, 57)]


def test_rows_of_a_declared_type(numbers, env):
    source = JdbcSource(numbers.options, "SELECT id, word FROM numbers -- all", NUMBERS, key="id", fetch_size=7)
    assert collected(env, source) == [Row(id=n * 3, word=f"w{n}%") for n in range(COUNT)]
    assert source.get_produced_type() == NUMBERS


def test_one_column_needs_no_row(numbers, env):
    source = JdbcSource(numbers.options, "SELECT id FROM numbers", Types.LONG(), key="id")
    assert collected(env, source) == [n * 3 for n in range(COUNT)]


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("partitions", [1, 5, 500])
def test_partitions_by_the_key(numbers, partitions, parallelism):
    source = JdbcSource(numbers.options, "SELECT id, word FROM numbers", NUMBERS, key="id", partitions=partitions)
    from penstock.datastream import StreamExecutionEnvironment

    with in_process():
        environment = StreamExecutionEnvironment().set_parallelism(parallelism)
        found = collected(environment, source)
    assert sorted(row.id for row in found) == [n * 3 for n in range(COUNT)]


def test_a_partition_for_each_tuple_of_parameters(numbers, env):
    query = "SELECT id, grp FROM numbers WHERE grp = ? AND id < ?"
    source = JdbcSource(numbers.options, query, key="id", parameters=[(0, 100), (2, 50)])
    found = collected(env, source)
    assert [row.id for row in found] == [n * 3 for n in range(0, 34, 4)] + [n * 3 for n in range(2, 17, 4)]


def test_ranges_of_a_query_of_ones_own(numbers, env):
    ranges = JdbcNumericBetweenParametersProvider(0, 200).of_batch_size(50)
    source = JdbcSource(numbers.options, "SELECT * FROM numbers WHERE id BETWEEN ? AND ?", key="id", parameters=ranges)
    assert [row.id for row in collected(env, source)] == [n * 3 for n in range(COUNT)]


@pytest.mark.parametrize("restart_every", [None, 1, 3])
@pytest.mark.parametrize(("most", "fetch_size"), [(4, 10), (10, 3), (1000, 1000), (19, 19)])
def test_another_reader_goes_on_where_one_stopped(numbers, most, fetch_size, restart_every):
    source = JdbcSource(
        numbers.options, "SELECT * FROM numbers", key="id", partitions=3, fetch_size=fetch_size, max_retries=0
    )
    found = read_all(source, most, restart_every)
    assert [row.id for row in found] == [n * 3 for n in range(COUNT)]


def test_a_key_of_several_columns(numbers):
    source = JdbcSource(numbers.options, "SELECT * FROM numbers", key=["grp", "id"], fetch_size=5)
    found = read_all(source, most=4, restart_every=2)
    assert [(row.grp, row.id) for row in found] == sorted((n % 4, n * 3) for n in range(COUNT))


def test_text_as_a_key(numbers):
    source = JdbcSource(numbers.options, "SELECT word FROM numbers", key="word", fetch_size=5)
    assert [row.word for row in read_all(source, 4, 1)] == sorted(f"w{n}%" for n in range(COUNT))


def test_rows_that_come_and_go_while_it_is_read(numbers):
    source = JdbcSource(numbers.options, "SELECT id FROM numbers", Types.LONG(), key="id", fetch_size=10)
    (split,) = source.create_enumerator().discover()
    reader = source.create_reader(None)
    reader.add_splits([split])
    (first,) = reader.fetch(20, 0)
    splits = reader.snapshot_state()
    reader.close()
    numbers.run("DELETE FROM numbers WHERE id < 15", "INSERT INTO numbers VALUES (1, 'late', 0), (1000, 'new', 0)")
    reader = source.create_reader(None)
    reader.add_splits(splits)
    rest = []
    while reader.snapshot_state():
        rest += [value for part in reader.fetch(20, 0) for value in part.values]
    assert first.values + rest == [*(n * 3 for n in range(COUNT)), 1000]


def test_a_table_without_rows(store, env):
    store.run("CREATE TABLE numbers (id INTEGER PRIMARY KEY)")
    for partitions in (1, 4):
        source = JdbcSource(store.options, "SELECT * FROM numbers", key="id", partitions=partitions)
        assert collected(env, source) == []


def test_reading_and_writing_the_same_file(sqlite_store, env):
    """A reader that left its cursor open would lock out the writer."""
    sqlite_store.run("CREATE TABLE a (id INTEGER PRIMARY KEY)", "CREATE TABLE b (id INTEGER PRIMARY KEY)")
    sqlite_store.run("INSERT INTO a VALUES " + ", ".join(f"({n})" for n in range(500)))
    source = JdbcSource(sqlite_store.options, "SELECT id FROM a", Types.LONG(), key="id", fetch_size=20)
    from penstock.datastream.connectors.jdbc import JdbcExecutionOptions

    sink = JdbcSink.sink("INSERT INTO b VALUES (?)", Types.LONG(), sqlite_store.options, JdbcExecutionOptions(0, 7))
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "a", max_records_per_epoch=50)
    stream.sink_to(sink)
    env.execute()
    assert sqlite_store.rows("SELECT COUNT(*) FROM b") == [(500,)]


def test_a_cursor_holds_few_rows(postgres_store):
    """The server keeps the rest: a million rows cost what a page of them costs."""
    source = JdbcSource(postgres_store.options, "SELECT n FROM generate_series(1, 1000000) n", key="n", fetch_size=100)
    reader = source.create_reader(None)
    reader.add_splits(source.create_enumerator().discover())
    (fetched,) = reader.fetch(1000, 0)
    assert len(fetched.values) == 100
    busy = "SELECT query FROM pg_stat_activity WHERE state = 'idle in transaction'"
    assert ["FETCH FORWARD" in query for (query,) in postgres_store.rows(busy)] == [True]
    reader.close()
    assert postgres_store.rows(busy) == []


# --- what is refused ---
def test_a_key_that_comes_twice(numbers):
    source = JdbcSource(numbers.options, "SELECT * FROM numbers", key="grp", fetch_size=3)
    with pytest.raises(SchemaMismatch, match=r"\('grp',\) must be unique, but two rows have \(0,\)"):
        read_all(source)


def test_a_key_that_is_null(store):
    store.run("CREATE TABLE numbers (id INTEGER)", "INSERT INTO numbers VALUES (1), (NULL)")
    with pytest.raises(SchemaMismatch, match="must not be null"):
        read_all(JdbcSource(store.options, "SELECT id FROM numbers", key="id"))


def test_a_key_that_the_query_does_not_have(numbers):
    with pytest.raises(SchemaMismatch, match="nope"):
        read_all(JdbcSource(numbers.options, "SELECT id FROM numbers", key="nope"))


def test_partitions_of_text(numbers):
    with pytest.raises(SchemaMismatch, match="key of whole numbers, but 'word' has the first value 'w0%'"):
        read_all(JdbcSource(numbers.options, "SELECT word FROM numbers", key="word", partitions=2))


def test_too_many_columns(numbers):
    with pytest.raises(SchemaMismatch, match=r"columns \['id', 'word', 'grp'\]"):
        read_all(JdbcSource(numbers.options, "SELECT * FROM numbers", NUMBERS, key="id"))


def test_rows_of_another_type_are_bad_records(store, env):
    store.run("CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT)", "INSERT INTO t VALUES (1, 'a'), (2, NULL), (3, 'b')")
    row = Types.ROW_NAMED(["id", "n"], [Types.INT(), Types.INT()])
    source = JdbcSource(store.options, "SELECT * FROM t", row, key="id")
    with pytest.raises(UndecodableRecord, match=r"key \(1,\) of the query.*'a' \(str\) does not fit INT"):
        collected(env, source)
    assert collected(env, source, bad_records=BadRecords.skip()) == [Row(id=2, n=None)]
    tag = OutputTag("bad")
    stream = env.from_source(
        source, WatermarkStrategy.no_watermarks(), "rows", bad_records=BadRecords.to_side_output(tag)
    )
    with stream.get_side_output(tag).execute_and_collect() as aside:
        assert [bad.message for bad in aside] == [(1, "a"), (3, "b")]


def test_mistakes_that_building_finds():
    options = JdbcConnectionOptions("jdbc:sqlite:x.db")
    with pytest.raises(ValueError, match="has 1 parameters, and \\(\\) has another number"):
        JdbcSource(options, "SELECT * FROM t WHERE a = ?", key="a")
    with pytest.raises(ValueError, match="for a query without parameters"):
        JdbcSource(options, "SELECT * FROM t WHERE a = ?", key="a", parameters=[(1,)], partitions=2)
    with pytest.raises(ValueError, match="name of a column"):
        JdbcSource(options, "SELECT * FROM t", key=[])
    with pytest.raises(ValueError, match="fetch_size must be at least 1"):
        JdbcSource(options, "SELECT * FROM t", key="a", fetch_size=0)
    with pytest.raises(TypeError, match="connection_options"):
        JdbcSource("jdbc:sqlite:x.db", "SELECT * FROM t", key="a")
    with pytest.raises(TypeError, match="key"):
        JdbcSource(options, "SELECT * FROM t")


@given(st.integers(-1000, 1000), st.integers(0, 500), st.integers(1, 80))
def test_ranges_cover_everything_once(first, extent, parts):
    provider = JdbcNumericBetweenParametersProvider(first, first + extent)
    ranges = provider.of_batch_num(parts).get_parameter_values()
    assert [n for start, end in ranges for n in range(start, end + 1)] == list(range(first, first + extent + 1))
    assert len(ranges) == min(parts, extent + 1)
    sizes = {end - start for start, end in ranges}
    assert max(sizes) - min(sizes) <= 1
    sized = provider.of_batch_size(parts).get_parameter_values()
    assert max(end - start + 1 for start, end in sized) <= parts


# --- lookups ---
def test_lookups_run_side_by_side(numbers):
    lookup = pickle.loads(
        pickle.dumps(JdbcLookup(numbers.options, "SELECT word FROM numbers WHERE id = ?", Types.STRING(), capacity=4))
    )

    async def ask():
        return await asyncio.gather(*(lookup.lookup(n) for n in range(9)))

    expected = [[f"w{n // 3}%"] if n % 3 == 0 else [] for n in range(9)]
    assert asyncio.run(ask()) == expected
    names = {thread.name.partition("_")[0] for thread in threading.enumerate()}
    assert "jdbc-lookup" in names
    assert pickle.loads(pickle.dumps(lookup)).lookup_now(3) == ["w1%"]
    lookup.close()
    assert asyncio.run(ask()) == expected
    lookup.close()


def test_lookups_that_cannot_be(numbers):
    lookup = JdbcLookup(numbers.options, "SELECT word FROM numbers WHERE id = ?", Types.INT())
    with pytest.raises(ValueError, match="has 1 parameters, not 2"):
        lookup.lookup_now(1, 2)
    with pytest.raises(TypeMismatch, match="'w0%'"):
        lookup.lookup_now(0)
    with pytest.raises(ValueError, match="capacity must be at least 1"):
        JdbcLookup(numbers.options, "SELECT 1", capacity=0)


def test_a_job_that_fails_names_the_source(numbers, env):
    source = JdbcSource(numbers.options, "SELECT * FROM numbers", key="grp")
    with pytest.raises(JobFailed, match="rows") as caught:
        collected(env, source)
    assert isinstance(caught.value, SchemaMismatch)
