"""What goes wrong in a database is said in Penstock's words, without passwords, and with the record if there is one."""

import sys
import threading
import time

import pytest

from penstock.common import Types, WatermarkStrategy
from penstock.connectors.jdbc import jdbc_writers as _jdbc_sink
from penstock.connectors.retrying import Retries
from penstock.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExecutionOptions,
    JdbcLookup,
    JdbcSink,
    JdbcSource,
)
from penstock.errors import AccessDenied, ConnectorError, MissingDependency, NotFound, SchemaMismatch
from tests.connectors.sql.test_jdbc_sink import ALL, CREATE, INSERT, PEOPLE, Context, writer
from tests.services.service import free_port

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Waits between tries that a test can sit through."""
    monkeypatch.setattr(_jdbc_sink, "Retries", lambda attempts: Retries(attempts, delay=0.05, longest=0.3))


def test_nobody_listens():
    options = JdbcConnectionOptions(
        f"jdbc:postgresql://127.0.0.1:{free_port()}/d?password=secret", None, "ann", "secret"
    )
    sink = JdbcSink.sink(INSERT, PEOPLE, options, JdbcExecutionOptions(max_retries=1))
    with pytest.raises(
        ConnectorError, match=r"connecting to jdbc:postgresql://127.0.0.1:\d+/d\S* failed 2 times"
    ) as caught:
        sink.create_writer(Context(), [])
    assert "refused" in str(caught.value) and "secret" not in str(caught.value)


@pytest.mark.parametrize("make", [JdbcSink.sink, JdbcSink.exactly_once_sink])
def test_wrong_credentials(postgres, make):
    wrong = JdbcConnectionOptions(postgres.url, None, postgres.user, "guess")
    with pytest.raises(AccessDenied, match="password authentication failed") as caught:
        make(INSERT, PEOPLE, wrong).create_writer(Context(), [])
    assert "guess" not in str(caught.value)
    unknown = JdbcConnectionOptions(postgres.url, None, "nobody", "guess")
    with pytest.raises(AccessDenied):
        make(INSERT, PEOPLE, unknown).create_writer(Context(), [])


def test_too_few_rights(postgres_store, postgres):
    postgres_store.run(CREATE, "DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN PASSWORD 'guest'")
    guest = JdbcConnectionOptions(postgres.url, None, "guest", "guest")
    schema = postgres_store.rows("SELECT current_schema()")[0][0]
    postgres_store.run(f"GRANT USAGE ON SCHEMA {schema} TO guest")
    writing = JdbcSink.sink(f"INSERT INTO {schema}.people VALUES (?, ?)", PEOPLE, guest).create_writer(Context(), [])
    writing.write(("ann", 1), None)
    with pytest.raises(AccessDenied, match="permission denied"):
        writing.flush(False)


def test_missing_database(postgres):
    options = JdbcConnectionOptions(
        postgres.url.replace("/postgres", "/nowhere"), None, postgres.user, postgres.password
    )
    with pytest.raises(NotFound, match='database "nowhere" does not exist'):
        JdbcSink.sink(INSERT, PEOPLE, options).create_writer(Context(), [])


def test_missing_folder_of_a_file(tmp_path):
    options = JdbcConnectionOptions(f"jdbc:sqlite:{tmp_path}/not/there.db")
    with pytest.raises(NotFound, match="unable to open"):
        JdbcSink.sink(INSERT, PEOPLE, options).create_writer(Context(), [])


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "x.db").write_text("no database at all, " * 100)
    writing = JdbcSink.sink(INSERT, PEOPLE, JdbcConnectionOptions(f"jdbc:sqlite:{tmp_path}/x.db")).create_writer(
        Context(), []
    )
    writing.write(("ann", 1), None)
    with pytest.raises(SchemaMismatch, match="not a database"):
        writing.flush(False)


def test_missing_table(store):
    writing = writer(store)
    writing.write(("ann", 1), None)
    with pytest.raises(NotFound, match="people") as caught:
        writing.flush(False)
    assert store.options.display_url in str(caught.value)


def test_missing_column(store):
    store.run("CREATE TABLE people (name TEXT)")
    writing = writer(store)
    writing.write(("ann", 1), None)
    with pytest.raises(SchemaMismatch, match="age"):
        writing.flush(False)


def test_the_record_that_does_not_fit_is_named(store):
    store.run(CREATE)
    writing = writer(store)
    writing.write_all([("ann", 1), ("bo", None), ("cy", 3)], None, None)
    with pytest.raises(SchemaMismatch, match="with the record \\('bo', None\\)"):
        writing.flush(False)
    assert store.rows(ALL) == []


def test_a_number_that_is_too_large(postgres_store):
    postgres_store.run(CREATE)
    writing = writer(postgres_store, type_info=Types.ROW([Types.STRING(), Types.LONG()]))
    writing.write_all([("ann", 1), ("bo", 2**40)], None, None)
    with pytest.raises(SchemaMismatch, match=r"out of range.* with the record \('bo', 1099511627776\)"):
        writing.flush(False)


def test_text_for_a_number(postgres_store):
    postgres_store.run(CREATE)
    writing = writer(postgres_store, type_info=None)
    writing.write(("ann", "old"), None)
    with pytest.raises(SchemaMismatch, match="'old'"):
        writing.flush(False)


def test_a_value_that_no_column_takes(store):
    store.run(CREATE)
    writing = writer(store, type_info=None)
    writing.write(("ann", object()), None)
    with pytest.raises(SchemaMismatch, match="object"):
        writing.flush(False)


def test_a_key_that_is_taken(store):
    store.run(CREATE, "INSERT INTO people VALUES ('ann', 1)")
    writing = writer(store)
    writing.write_all([("bo", 2), ("ann", 2)], None, None)
    with pytest.raises(ConnectorError, match=r"(?i)unique.*with the record \('ann', 2\)"):
        writing.flush(False)


def test_an_upsert_needs_a_unique_key(store):
    store.run("CREATE TABLE people (name TEXT, age INTEGER)")
    writing = JdbcSink.upsert("people", None, ["name"], PEOPLE, store.options).create_writer(Context(), [])
    writing.write(("ann", 1), None)
    with pytest.raises(ConnectorError, match="ON CONFLICT"):
        writing.flush(False)


def test_a_statement_that_is_none(store):
    writing = writer(store, sql="INSRT INTO people VALUES (?, ?)")
    writing.write(("ann", 1), None)
    with pytest.raises(ConnectorError, match="syntax error"):
        writing.flush(False)


def test_the_exactly_once_commit_names_the_record_too(store):
    store.run(CREATE)
    sink = JdbcSink.exactly_once_sink(INSERT, PEOPLE, store.options)
    writing, committer = sink.create_writer(Context(), []), sink.create_committer()
    writing.write_all([("ann", 1), ("bo", None)], None, None)
    with pytest.raises(SchemaMismatch, match=r"\('bo', None\)"):
        committer.commit(writing.prepare_commit())
    assert store.rows(ALL) == []


def test_a_locked_file_is_waited_for(sqlite_store):
    sqlite_store.run(CREATE)
    writing = writer(sqlite_store)
    writing.write(("ann", 1), None)
    with sqlite_store.engine.begin() as other:
        other.exec_driver_sql("INSERT INTO people VALUES ('bo', 2)")
        thread = threading.Thread(target=writing.flush, args=(False,))
        thread.start()
        time.sleep(0.2)  # for one that does not wait to show
        assert thread.is_alive()
    thread.join(60)
    assert sqlite_store.rows(ALL) == [("ann", 1), ("bo", 2)]


def test_a_server_that_is_started_again_is_found_again(postgres_store, postgres):
    """Sinks, sources and lookups go on with the server that was gone in the middle."""
    postgres_store.run(CREATE)
    writing = writer(postgres_store, max_retries=6)
    once = JdbcSink.exactly_once_sink(INSERT, PEOPLE, postgres_store.options)
    preparing, committer = once.create_writer(Context(), []), once.create_committer()
    lookup = JdbcLookup(postgres_store.options, "SELECT age FROM people WHERE name = ?", Types.INT())
    writing.write(("ann", 1), None)
    writing.flush(False)
    preparing.write(("once1", 1), None)
    committer.commit(preparing.prepare_commit())
    assert lookup.lookup_now("ann") == [1]
    source = JdbcSource(postgres_store.options, "SELECT n FROM generate_series(1, 100) AS n", key="n", fetch_size=10)
    reader = source.create_reader(None)
    reader.add_splits(source.create_enumerator().discover())
    (first,) = reader.fetch(15, 0)
    postgres.kill()
    threading.Timer(0.7, postgres.start).start()
    writing.write(("bo", 2), None)
    writing.flush(False)
    preparing.write(("once2", 2), None)
    again = preparing.prepare_commit()
    committer.commit(again)
    committer.commit(again)
    assert lookup.lookup_now("bo") == [2]
    read = [row.n for row in first.values]
    while not (fetched := reader.fetch(30, 0))[0].last:
        read += [row.n for row in fetched[0].values]
    assert [*read, *(row.n for row in fetched[0].values)] == list(range(1, 101))
    assert postgres_store.rows(ALL) == [("ann", 1), ("bo", 2), ("once1", 1), ("once2", 2)]
    for part in (writing, committer, lookup, reader):
        part.close()


def test_a_server_that_stays_away(postgres_store, postgres):
    postgres_store.run(CREATE)
    writing = writer(postgres_store, max_retries=2)
    writing.write(("ann", 1), None)
    postgres.stop()
    try:
        with pytest.raises(ConnectorError, match=r"writing to jdbc:postgresql://.* failed 3 times"):
            writing.flush(False)
    finally:
        postgres.start()


def test_the_job_says_which_sink(store, env):
    env.from_collection([("ann", 1)], PEOPLE).sink_to(JdbcSink.sink(INSERT, PEOPLE, store.options)).name("people")
    with pytest.raises(NotFound, match="people"):
        env.execute()


def test_missing_packages(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    sink = JdbcSink.sink(INSERT, PEOPLE, JdbcConnectionOptions(f"jdbc:sqlite:{tmp_path}/x.db"))
    with pytest.raises(MissingDependency, match=r"penstock\[sql\]"):
        sink.create_writer(Context(), [])


def test_missing_drivers(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependency, match=r"penstock\[postgres\]"):
        JdbcSink.sink(INSERT, PEOPLE, JdbcConnectionOptions("jdbc:postgresql://h/d")).create_writer(Context(), [])
    with pytest.raises(MissingDependency, match="nosuchdb"):
        JdbcSink.sink(INSERT, PEOPLE, JdbcConnectionOptions("jdbc:nosuchdb://h/d")).create_writer(Context(), [])


def test_a_source_says_what_is_missing(store, env):
    source = JdbcSource(store.options, "SELECT * FROM missing_rows", key="id")
    env.from_source(source, WatermarkStrategy.no_watermarks(), "rows").print()
    with pytest.raises(NotFound, match="missing_rows"):
        env.execute()
