"""Collections, sequences, rates and text files."""

import pytest

from penstock.common import Row, Types, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import FileSource, StreamFormat
from penstock.datastream.connectors.number_seq import NumberSequenceSource
from penstock.datastream.functions import MapFunction
from penstock.errors import JobFailed, NotFound, TypeMismatch
from penstock.testing import ManualClock, in_process


@pytest.mark.parametrize("epoch_records", [None, 1, 2])
def test_a_collection_comes_in_order(run, epoch_records):
    values = [3, "a", None, (1, 2), Row(1), {"k": [1]}]
    assert run(lambda env: env.from_collection(values), epoch_records=epoch_records) == values
    assert run(lambda env: env.from_elements(*values), epoch_records=epoch_records) == values


def test_collections_of_any_kind(run):
    assert run(lambda env: env.from_collection(range(3))) == [0, 1, 2]
    assert run(lambda env: env.from_collection(n for n in "ab")) == ["a", "b"]
    assert run(lambda env: env.from_collection([])) == []


def test_a_collection_larger_than_a_chunk(run):
    assert run(lambda env: env.from_collection(range(10_000))) == list(range(10_000))


def test_a_collection_takes_its_declared_type(run, env):
    assert repr(run(lambda env: env.from_collection([1, 2], Types.DOUBLE()))) == "[1.0, 2.0]"
    with pytest.raises(TypeMismatch, match=r"'x' .str. does not fit INT"):
        env.from_collection([1, "x"], Types.INT())


@pytest.mark.parametrize("parallelism", [1, 2, 3, 7])
@pytest.mark.parametrize(("start", "end"), [(0, 4), (-3, 3), (5, 5), (1, 100)])
def test_a_sequence_is_split_into_runs(run, parallelism, start, end):
    got = run(lambda env: env.from_sequence(start, end), parallelism=parallelism, epoch_records=7)
    assert sorted(got) == list(range(start, end + 1))


def test_each_subtask_emits_one_run_of_a_sequence(run):
    class Where(MapFunction):
        def open(self, runtime_context):
            self.subtask = runtime_context.get_index_of_this_subtask()

        def map(self, value):
            return self.subtask, value

    got = run(lambda env: env.from_sequence(0, 9).map(Where()), parallelism=3)
    runs = [[v for s, v in got if s == subtask] for subtask in range(3)]
    assert [v for part in runs for v in part] == list(range(10))
    assert sorted(map(len, runs)) == [3, 3, 4]


def test_a_sequence_does_not_run_backwards(env):
    with pytest.raises(ValueError, match=r"5 to 4"):
        env.from_sequence(5, 4)


def test_number_sequence_source(run):
    strategy = WatermarkStrategy.no_watermarks()
    got = run(lambda env: env.from_source(NumberSequenceSource(1, 3), strategy, "numbers", Types.LONG()))
    assert got == [1, 2, 3]


def test_from_source_wants_a_source_it_knows(env):
    with pytest.raises(TypeError, match=r"must be a Source or a NumberSequenceSource, not 3"):
        env.from_source(3, WatermarkStrategy.no_watermarks(), "n")
    with pytest.raises(TypeError, match=r"no_watermarks"):
        env.from_source(NumberSequenceSource(1, 3), None, "n")


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 10])
def test_generate_counts_up(run, parallelism, count):
    got = run(lambda env: env.generate(lambda n: n * n, rate=100, count=count), parallelism=parallelism)
    assert sorted(got) == [n * n for n in range(count)]


def test_generate_keeps_its_rate():
    clock = ManualClock(5000)
    with in_process(clock=clock):
        env = StreamExecutionEnvironment().set_parallelism(1)
        assert env.generate(rate=10, count=21).execute_and_collect(limit=21) == list(range(21))
    assert 2000 <= clock.now() - 5000 <= 3000


def test_generate_for_ever(env):
    assert env.generate(str, rate=1000).execute_and_collect(limit=5) == ["0", "1", "2", "3", "4"]


def test_generate_checks_its_arguments(env):
    with pytest.raises(ValueError, match=r"above 0"):
        env.generate(rate=0)
    with pytest.raises(ValueError, match=r"must not be negative"):
        env.generate(count=-1)


def test_a_failing_generator_function_names_the_source(env):
    env.generate(lambda n: 1 // n, rate=1, count=3).name("Ticks").print()
    with pytest.raises(JobFailed, match=r"Ticks .*ZeroDivisionError"):
        env.execute()


# --- text files ---
@pytest.fixture
def folder(tmp_path):
    (tmp_path / "b.txt").write_text("three\nfour\n")
    (tmp_path / "a.txt").write_text("one\ntwo")
    (tmp_path / "c.csv").write_text("five\n")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden").write_text("no\n")
    (tmp_path / "nested").mkdir()
    return tmp_path


def test_lines_of_a_file(run, folder):
    assert run(lambda env: env.read_text_file(str(folder / "a.txt"))) == ["one", "two"]
    assert run(lambda env: env.read_text_file(f"file://{folder}/a.txt")) == ["one", "two"]


def test_lines_of_a_directory_pass_over_hidden_files(run, folder):
    assert run(lambda env: env.read_text_file(str(folder))) == ["one", "two", "three", "four", "five"]


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_lines_of_a_pattern(run, folder, parallelism):
    got = run(lambda env: env.read_text_file(str(folder / "*.txt")), parallelism=parallelism)
    assert sorted(got) == ["four", "one", "three", "two"]


@pytest.mark.parametrize("name", ["missing.txt", "*.missing", "nested"])
def test_no_file(env, folder, name):
    env.read_text_file(str(folder / name)).print()
    with pytest.raises(NotFound, match=r"Text File Source .*there is no file at file:///"):
        env.execute()


def test_empty_files_and_empty_lines(run, tmp_path):
    (tmp_path / "empty").write_text("")
    (tmp_path / "lines").write_text("\n\nx\n\n")
    assert run(lambda env: env.read_text_file(str(tmp_path / "empty"))) == []
    assert run(lambda env: env.read_text_file(str(tmp_path / "lines"))) == ["", "", "x", ""]


def test_another_charset(run, tmp_path):
    (tmp_path / "f").write_bytes("grüße\n".encode("latin-1"))
    assert run(lambda env: env.read_text_file(str(tmp_path / "f"), "ISO-8859-1")) == ["grüße"]


def test_bytes_that_are_no_text_name_the_source(env, tmp_path):
    (tmp_path / "f").write_bytes(b"\xff\xfe\n")
    env.read_text_file(str(tmp_path / "f")).print()
    with pytest.raises(JobFailed, match=r"Text File Source .*UndecodableRecord: the record at .* line at byte 0"):
        env.execute()


def test_a_charset_of_two_bytes(run, tmp_path):
    (tmp_path / "f").write_bytes("ab\ncd\n".encode("utf-16-le"))
    assert run(lambda env: env.read_text_file(str(tmp_path / "f"), "UTF-16LE")) == ["ab", "cd"]


def test_only_the_line_end_is_dropped(run, tmp_path):
    (tmp_path / "f").write_bytes(b"a\r\r\nb\r\n")
    assert run(lambda env: env.read_text_file(str(tmp_path / "f"))) == ["a\r", "b"]


def test_file_source(run, folder):
    source = FileSource.for_record_stream_format(
        StreamFormat.text_line_format(), str(folder / "a.txt"), str(folder / "c.csv")
    )
    strategy = WatermarkStrategy.no_watermarks()
    built = source.process_static_file_set().build()
    assert run(lambda env: env.from_source(built, strategy, "files", Types.STRING())) == ["one", "two", "five"]


def test_a_stream_can_be_read_by_a_second_job(env):
    stream = env.from_collection([1, 2])
    assert stream.execute_and_collect(limit=9) == [1, 2]
    assert stream.map(lambda v: v + 1).execute_and_collect(limit=9) == [2, 3]
