"""Exactly once: whatever dies whenever, each record is in the table once."""

import json
import threading
from collections import Counter

import pytest
import sqlalchemy

from penstock.common import Types, WatermarkStrategy
from penstock.connectors.jdbc.database import database_url
from penstock.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcSink,
    JdbcSource,
)
from penstock.datastream.connectors.prepared import MARKERS_KEPT, Prepared
from penstock.errors import JobDisplaced
from tests.connectors.crashing import RECORDS, Fragile, check_seeds, make_fragile, once_each
from tests.connectors.sql.conftest import END_OTHERS, Store
from tests.connectors.sql.test_jdbc_sink import Context

pytestmark = pytest.mark.usefixtures("quiet")
NUMBER = Types.ROW([Types.INT()])


def two_sinks(environment, options):
    """One sink with the user's statement, one upsert; a source that reads from the database itself."""
    environment.set_parallelism(2)
    source = JdbcSource(options, "SELECT n FROM numbers", Types.INT(), key="n", partitions=3, fetch_size=4)
    numbers = environment.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
    rows = (
        numbers.map(Fragile(), Types.INT()).uid("fragile").map(lambda n: (n,), Types.TUPLE([Types.INT()])).uid("rows")
    )
    rows.sink_to(JdbcSink.exactly_once_sink("INSERT INTO a VALUES (?)", NUMBER, options)).uid("a")
    once = JdbcExactlyOnceOptions("own_markers")
    counts = "INSERT INTO b VALUES (?, 1) ON CONFLICT (n) DO UPDATE SET times = b.times + 1"
    rows.sink_to(JdbcSink.exactly_once_sink(counts, NUMBER, options, exactly_once_options=once)).uid("b")


def prepare(store):
    store.run("CREATE TABLE a (n INTEGER)", "CREATE TABLE b (n INTEGER PRIMARY KEY, times INTEGER)")
    store.run("CREATE TABLE numbers (n INTEGER)")
    store.run("INSERT INTO numbers VALUES " + ", ".join(f"({n})" for n in range(RECORDS)))


def check(store, what):
    expected = once_each([(n,) for n in range(RECORDS)])
    assert Counter(store.rows("SELECT n FROM a")) == expected, what
    assert sorted(store.rows("SELECT n, times FROM b")) == [(n, 1) for n in range(RECORDS)], what


def simulated(monkeypatch, seeds, new_store):
    make_fragile(monkeypatch)
    current = []

    def fresh(name):
        current[:] = [new_store(name)]
        prepare(current[0])

    def build(environment):
        two_sinks(environment, current[0].options)

    return check_seeds(seeds, build, lambda what: check(current[0], what), fresh)


@pytest.mark.parametrize("first", range(1, 61, 20))
def test_crashes_on_sqlite(monkeypatch, tmp_path, first):
    def new_store(name):
        options = JdbcConnectionOptions(f"jdbc:sqlite:{tmp_path}/{name}.db")
        return Store(options, sqlalchemy.create_engine(database_url(options), poolclass=sqlalchemy.NullPool))

    simulated(monkeypatch, range(first, first + 20), new_store)


def test_crashes_on_postgres(monkeypatch, postgres_store):
    tables = ["a", "b", "numbers", "penstock_commits", "own_markers"]

    def new_store(name):
        postgres_store.run(END_OTHERS, *(f"DROP TABLE IF EXISTS {table}" for table in tables))
        return postgres_store

    simulated(monkeypatch, range(1, 13), new_store)


# --- the commit itself ---
def prepared(identifier, *numbers, origin="jdbc-sink-0"):
    return Prepared(identifier, origin, [(number,) for number in numbers], 1, 1000)


@pytest.fixture
def sink(store):
    store.run("CREATE TABLE a (n INTEGER)")
    return JdbcSink.exactly_once_sink("INSERT INTO a VALUES (?)", NUMBER, store.options)


def test_what_has_its_marker_is_not_written_again(store, sink):
    for _ in range(3):
        committer = sink.create_committer()
        committer.commit([prepared("x", 1, 2), prepared("y", 3)])
        committer.commit([prepared("x", 1, 2)])
    committer.commit([prepared("x", 9, origin="another")])
    assert store.rows("SELECT n FROM a ORDER BY n") == [(1,), (2,), (3,), (9,)]
    assert sorted(store.rows("SELECT origin, ids FROM penstock_commits")) == [
        ("another", '["x"]'),
        ("jdbc-sink-0", '["x", "y"]'),
    ]


def test_the_last_markers_are_kept(store, sink):
    committer = sink.create_committer()
    committer.commit([prepared(f"id{number}", number) for number in range(MARKERS_KEPT + 5)])
    ((ids,),) = store.rows("SELECT ids FROM penstock_commits")
    assert json.loads(ids) == [f"id{number}" for number in range(5, MARKERS_KEPT + 5)]


def test_a_commit_that_comes_after_its_marker_was_forgotten_is_refused_to_a_displaced_driver(store, sink):
    """It was stopped within its commit for so long that a new owner has committed the same, and much more."""
    late, owner = sink.create_committer(), sink.create_committer()
    owner.commit([prepared(f"id{number}", number) for number in range(MARKERS_KEPT + 5)])
    asked = []

    def displaced():
        asked.append("within the transaction")
        raise JobDisplaced("the job has a new owner")

    late.check_owner = displaced
    with pytest.raises(JobDisplaced):
        late.commit([prepared("id0", 0)])
    assert asked and store.rows("SELECT COUNT(*) FROM a") == [(MARKERS_KEPT + 5,)]
    late.commit([prepared(f"id{MARKERS_KEPT}", MARKERS_KEPT)])
    assert len(asked) == 1, "what has its marker needs no right"


def test_nobody_commits_beside_one_that_asks_whether_it_may(store, sink):
    """Between its question and its end, the new owner waits for the lock of the markers, and then sees its marker."""
    sink.create_writer(Context(), [])
    late, owner = sink.create_committer(), sink.create_committer()
    committing = threading.Thread(target=lambda: owner.commit([prepared("x", 1)]))

    def meanwhile():
        committing.start()
        committing.join(0.3)
        assert committing.is_alive()

    late.check_owner = meanwhile
    late.commit([prepared("x", 1)])
    committing.join(60)
    assert store.rows("SELECT n FROM a") == [(1,)]


def test_one_that_stops_within_its_commit_does_not_hold_up_a_new_owner(postgres_store):
    """PostgreSQL ends its transaction; when it goes on, it begins again and finds that all is done."""
    postgres_store.run("CREATE TABLE a (n INTEGER)")
    once = JdbcExactlyOnceOptions.builder().with_timeout_sec(1).build()
    sink = JdbcSink.exactly_once_sink(
        "INSERT INTO a VALUES (?)", NUMBER, postgres_store.options, exactly_once_options=once
    )
    sink.create_writer(Context(), [])
    late, owner = sink.create_committer(), sink.create_committer()
    stops = []

    def stopped():
        stops.append("within the transaction")
        committing = threading.Thread(target=lambda: owner.commit([prepared("x", 1)]))
        committing.start()
        committing.join(60)

    late.check_owner = stopped
    late.commit([prepared("x", 1)])
    assert stops == ["within the transaction"]
    assert postgres_store.rows("SELECT n FROM a") == [(1,)]


def test_writers_of_all_subtasks_make_the_table_of_markers_at_the_same_time(store, sink):
    errors = []

    def start(subtask):
        try:
            sink.create_writer(Context(subtask), [])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=start, args=(subtask,)) for subtask in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert store.rows("SELECT COUNT(*) FROM penstock_commits") == [(0,)]


def test_two_that_commit_the_same_at_the_same_time(store, sink):
    """A process that was thought dead may be alive: one waits for the other, and then sees its marker."""
    sink.create_writer(Context(), [])
    errors = []

    def commit():
        try:
            sink.create_committer().commit([prepared("x", 1, 2)])
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=commit) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert errors == []
    assert store.rows("SELECT n FROM a ORDER BY n") == [(1,), (2,)]


def test_writers_prepare_what_came_since_the_last_checkpoint(store, sink):
    writing = sink.create_writer(Context(3), [])
    writing.checkpoint_id = 7
    writing.write((1,), None)
    writing.write_all([(2,), (3,)], None, None)
    (first,) = writing.prepare_commit()
    assert (first.origin, first.records, first.checkpoint_id) == ("jdbc-sink-3", [(1,), (2,), (3,)], 7)
    assert writing.prepare_commit() == []
    assert store.rows("SELECT n FROM a") == []
