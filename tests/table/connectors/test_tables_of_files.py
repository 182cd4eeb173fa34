"""Tables in files: partitions in folders, metadata, formats, and what is announced or replaced."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Row, Types
from penstock.connectors.files.file_writer import FileSettings
from penstock.errors import PenstockError, TableException, ValidationException
from penstock.formats.json.json_format import JsonLinesWriters
from penstock.table import DataTypes, EnvironmentSettings, TableEnvironment
from penstock.table.connectors.file_partition_time import CommitRule
from penstock.table.connectors.file_partitions import PartitionFolders, Partitions
from penstock.table.connectors.file_table_sink import PartitionCommitter, StoredRows, TableFileSink
from penstock.table.logical.nodes import Column
from penstock.testing import in_process
from tests.connectors.files.driving import SinkJob

COLUMNS = "id INT, amount DECIMAL(5, 2), ts TIMESTAMP(3), moment TIMESTAMP_LTZ(3), dt STRING, hr INT"
ROWS = """
    SELECT id, CAST(id AS DECIMAL(5, 2)), TIMESTAMP '2024-01-31 10:00:00.125',
           TO_TIMESTAMP_LTZ(1706695200125, 3), CAST(dt AS STRING), hr
    FROM (VALUES (1, '2024-01-31', 7), (2, 'a:b/c', 8), (3, CAST(NULL AS STRING), 9)) AS t(id, dt, hr)
"""


@pytest.fixture
def batch():
    with in_process():
        yield TableEnvironment.create(EnvironmentSettings.in_batch_mode())


@pytest.fixture
def streaming():
    with in_process():
        yield TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


def make(t_env, path, columns=COLUMNS, keys="dt, hr", name="t", form="json", **options):
    text = "".join(f", '{key}' = '{value}'" for key, value in options.items())
    partitioned = f"PARTITIONED BY ({keys})" if keys else ""
    t_env.execute_sql(
        f"CREATE TABLE {name} ({columns}) {partitioned} "
        f"WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{form}'{text})"
    )


def rows(t_env, query):
    return sorted(tuple(row) for row in t_env.execute_sql(query).collect())


def files(path):
    return sorted(str(one.relative_to(path)) for one in Path(path).rglob("*") if one.is_file())


def folders(path):
    return sorted({str(Path(one).parent) for one in files(path)})


# --- partitions ---
@pytest.mark.parametrize("form", ["csv", "json", "parquet", "orc", "avro"])
def test_what_is_written_is_read_again(batch, tmp_path, form):
    make(batch, tmp_path, form=form)
    batch.execute_sql(f"INSERT INTO t {ROWS}").wait()
    assert folders(tmp_path) == ["dt=2024-01-31/hr=7", "dt=__DEFAULT_PARTITION__/hr=9", "dt=a%3Ab%2Fc/hr=8"]
    assert sorted(rows(batch, "SELECT * FROM t"), key=str) == sorted(rows(batch, ROWS), key=str)


def test_partitions_that_are_not_wanted_are_not_read(batch, tmp_path):
    make(batch, tmp_path)
    batch.execute_sql(f"INSERT INTO t {ROWS}").wait()
    (tmp_path / "dt=2024-01-31/hr=7/part-broken").write_text("{not JSON\n")
    assert rows(batch, "SELECT id FROM t WHERE hr > 7") == [(2,), (3,)]
    assert rows(batch, "SELECT id FROM t WHERE hr = 8 AND id < 2") == []
    assert rows(batch, "SELECT id FROM t WHERE dt IS NULL OR dt <> '2024-01-31'") == [(2,), (3,)]
    with pytest.raises(PenstockError, match="part-broken"):
        rows(batch, "SELECT id FROM t WHERE id > 7")
    assert "partitions=[($5 > 7)]" in batch.explain_sql("SELECT id FROM t WHERE hr > 7 AND id > 1")


def test_values_of_a_partition_in_the_statement(batch, tmp_path):
    make(batch, tmp_path, "id INT, dt STRING, hr INT", **{"partition.default-name": "none"})
    batch.execute_sql("INSERT INTO t PARTITION (dt = 'x', hr = '3') SELECT 1").wait()
    batch.execute_sql("INSERT INTO t PARTITION (dt = 'y') SELECT 2, CAST(NULL AS INT)").wait()
    assert folders(tmp_path) == ["dt=x/hr=3", "dt=y/hr=none"]
    assert sorted(rows(batch, "SELECT * FROM t"), key=str) == [(1, "x", 3), (2, "y", None)]
    with pytest.raises(ValidationException, match="partitioned by dt, hr"):
        batch.execute_sql("INSERT INTO t PARTITION (id = 1) SELECT 'x', 2")


def test_a_file_outside_of_the_partitions_is_refused(batch, tmp_path):
    make(batch, tmp_path, "id INT, dt STRING", "dt")
    (tmp_path / "stray").write_text('{"id": 1}\n')
    with pytest.raises(PenstockError, match="not in a folder dt="):
        rows(batch, "SELECT * FROM t")


def test_a_value_that_does_not_fit_its_column_is_refused(batch, tmp_path):
    make(batch, tmp_path, "id INT, hr INT", "hr")
    (tmp_path / "hr=noon").mkdir()
    (tmp_path / "hr=noon/part-0").write_text('{"id": 1}\n')
    with pytest.raises(PenstockError, match="'noon' is no INT"):
        rows(batch, "SELECT * FROM t")


KEYS = Partitions((Column("a b", DataTypes.STRING()), Column("n", DataTypes.BIGINT()), Column("d", DataTypes.DATE())))


@settings(deadline=None)
@given(st.text(min_size=1).filter(str.isprintable), st.none() | st.integers(-(2**63), 2**63 - 1), st.dates())
def test_any_value_comes_back_from_the_name_of_its_folder(text, number, dt):
    folder = KEYS.folder([text, number, dt])
    assert len(folder.split("/")) == 3
    assert KEYS.values(f"file:///x/{folder}/part-0") == (text, number, dt)


# --- which files, and what is known of them ---
def test_files_are_chosen_by_their_path(batch, tmp_path):
    for name in ("a-1", "a-2", "b-1"):
        (tmp_path / name).write_text(json.dumps({"name": name}) + "\n")
    make(batch, tmp_path, "name STRING", "", **{"source.path.regex-pattern": r".*/a-\d"})
    assert rows(batch, "SELECT name FROM t") == [("a-1",), ("a-2",)]


def test_metadata_of_files(batch, tmp_path):
    (tmp_path / "one").write_text('{"id": 1}\n')
    columns = (
        "path STRING METADATA FROM 'file.path' VIRTUAL, id INT, name STRING METADATA FROM 'file.name' VIRTUAL, "
        "`file.size` BIGINT METADATA VIRTUAL, changed TIMESTAMP_LTZ(3) METADATA FROM 'file.modification-time' VIRTUAL"
    )
    make(batch, tmp_path, columns, "")
    ((path, number, name, size, moment),) = rows(batch, "SELECT * FROM t")
    assert (path, number, name, size) == (str(tmp_path / "one"), 1, "one", 10)
    assert int(moment.timestamp() * 1000) == int((tmp_path / "one").stat().st_mtime * 1000)


@pytest.mark.parametrize(
    ("columns", "keys", "options", "words"),
    [
        ("id INT, x STRING METADATA FROM 'file.owner' VIRTUAL", "", {}, "file.modification-time"),
        ("id INT", "dt", {}, "PARTITIONED BY dt, which is not one of its columns"),
        ("dt STRING", "dt", {}, "at least one column"),
        ("id INT", "", {"source.monitor-interval": "soon"}, "duration"),
        ("id INT", "", {"source.monitor-interval": "0 s"}, "longer than zero"),
        ("id INT", "", {"source.path.regex-pattern": "("}, "regular expression"),
        ("id INT", "", {"sink.rolling-policy.file-size": "big"}, "a size"),
        ("id INT", "", {"auto-compaction": "true"}, "not offered"),
        ("id INT", "", {"sink.partition-commit.policy.kind": "success-file"}, "PARTITIONED BY"),
        ("id INT, dt STRING", "dt", {"sink.partition-commit.policy.kind": "metastore"}, "success-file"),
        ("id INT, dt STRING", "dt", {"sink.partition-commit.triger": "x"}, "sink.partition-commit.trigger"),
    ],
)
def test_options_are_checked(batch, tmp_path, columns, keys, options, words):
    with pytest.raises(ValidationException, match=words):
        make(batch, tmp_path, columns, keys, **options)
        batch.execute_sql("SELECT * FROM t")


# --- formats of messages ---
@pytest.mark.parametrize("form", ["debezium-json", "canal-json", "maxwell-json", "ogg-json"])
def test_changes_go_into_files_and_come_back(streaming, tmp_path, form):
    make(streaming, tmp_path, "word STRING, n BIGINT", "", form=form)
    words = "(VALUES ('a'), ('b'), ('a'), ('a')) AS t(word)"
    streaming.execute_sql(f"INSERT INTO t SELECT word, COUNT(*) FROM {words} GROUP BY word").wait()
    assert sorted(streaming.sql_query("SELECT * FROM t").to_pandas().itertuples(index=False, name=None)) == [
        ("a", 3),
        ("b", 1),
    ]


def test_updates_need_a_format_that_says_so(streaming, tmp_path):
    make(streaming, tmp_path, "n BIGINT", "")
    with pytest.raises(TableException, match="update and delete"):
        streaming.execute_sql("INSERT INTO t SELECT COUNT(*) FROM (VALUES (1)) AS t(x)")


def test_raw_lines(batch, tmp_path):
    batch.get_config().set("parallelism.default", "1")
    make(batch, tmp_path, "line STRING, dt STRING", "dt", form="raw")
    batch.execute_sql("INSERT INTO t VALUES ('a \"b\"', 'x'), ('', 'x')").wait()
    assert (tmp_path / files(tmp_path)[0]).read_text() == 'a "b"\n\n'
    assert rows(batch, "SELECT * FROM t") == [("", "x"), ('a "b"', "x")]


# --- overwriting ---
def test_a_table_is_replaced(batch, tmp_path):
    make(batch, tmp_path, "id INT", "")
    for statement in ("INSERT INTO", "INSERT INTO", "INSERT OVERWRITE"):
        batch.execute_sql(f"{statement} t SELECT 1").wait()
    assert rows(batch, "SELECT * FROM t") == [(1,)]


def test_partitions_that_get_rows_are_replaced(batch, tmp_path):
    make(batch, tmp_path, "id INT, dt STRING", "dt")
    batch.execute_sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')").wait()
    batch.execute_sql("INSERT OVERWRITE t PARTITION (dt = 'a') SELECT 3").wait()
    assert rows(batch, "SELECT * FROM t") == [(2, "b"), (3, "a")]


def test_what_cannot_be_replaced_is_refused(streaming, tmp_path):
    make(streaming, tmp_path, "id INT", "")
    streaming.execute_sql("CREATE TABLE p (id INT) WITH ('connector' = 'print')")
    with pytest.raises(ValidationException, match="BATCH mode"):
        streaming.execute_sql("INSERT OVERWRITE t SELECT 1")
    with pytest.raises(ValidationException, match="cannot replace"):
        streaming.execute_sql("INSERT OVERWRITE p SELECT 1")


# --- partitions that are announced ---
@pytest.mark.parametrize("trigger", ["process-time", "partition-time"])
def test_all_partitions_are_announced_at_the_end(streaming, tmp_path, trigger):
    options = {"sink.partition-commit.policy.kind": "success-file", "sink.partition-commit.trigger": trigger}
    make(streaming, tmp_path, "id INT, dt STRING", "dt", **options)
    streaming.execute_sql("INSERT INTO t VALUES (1, '2024-01-31'), (2, '2024-02-01')").wait()
    marks = [name for name in files(tmp_path) if name.endswith("_SUCCESS")]
    assert marks == ["dt=2024-01-31/_SUCCESS", "dt=2024-02-01/_SUCCESS"]
    assert rows(streaming, "SELECT id FROM t") == [(1,), (2,)]


def test_when_a_partition_is_complete():
    by_clock = CommitRule(delay=1000)
    assert not by_clock.is_due("dt=x", 5000, 5999, None) and by_clock.is_due("dt=x", 5000, 6000, None)
    noon = 1706702400000
    by_events = CommitRule(by_partition_time=True, delay=3_600_000, pattern="$dt $hr:00:00")
    folder = "dt=2024-01-31/hr=11"
    assert not by_events.is_due(folder, 0, 0, None) and not by_events.is_due(folder, 0, 0, noon - 1)
    assert by_events.is_due(folder, 0, 0, noon)
    assert CommitRule(by_partition_time=True, zone="Asia/Tokyo").moment("dt=2024-01-31") == noon - 21 * 3_600_000
    with pytest.raises(PenstockError, match="timestamp-pattern"):
        by_events.moment("dt=someday/hr=11")


def test_a_partition_waits_for_all_writers_and_through_a_crash(tmp_path):
    dt = Partitions((Column("dt", DataTypes.STRING()),))
    stored = StoredRows(JsonLinesWriters.for_row_type(Types.ROW_NAMED(["id"], [Types.INT()])), (0,))
    settings = FileSettings(f"file://{tmp_path}", writer_factory=stored, bucket_assigner=PartitionFolders(dt, (1,)))
    job = SinkJob(TableFileSink(settings, CommitRule(delay=10_000)), parallelism=2)
    committer = PartitionCommitter("_SUCCESS")

    def announced():
        taken = job.checkpoint()
        committer.commit([item for one in job.pending for items in one.values() for item in items])
        job.complete()
        return taken, [name for name in files(tmp_path) if name.endswith("_SUCCESS")]

    job.write(Row(id=1, dt="x"), subtask=0)
    taken, marks = announced()
    assert marks == []
    job.crash(taken)
    job.pass_time(10_000)
    job.write(Row(id=2, dt="x"), subtask=1)
    assert announced()[1] == []  # the first writer waits no more, the second does
    job.pass_time(10_000)
    assert announced()[1] == ["dt=x/_SUCCESS"]
