"""FileSource: which files are found, how they are cut, and reading that goes on where it was."""

import bz2
import gzip
import io
import lzma
import os
import pickle

import fsspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base import storage
from penstock.common import Duration
from penstock.connectors.files import access, file_source
from penstock.connectors.retrying import Retries
from penstock.datastream.connectors.base import Boundedness
from penstock.datastream.connectors.file_system import (
    BulkFormat,
    FileEnumeratorProvider,
    FileSource,
    FileSplit,
    FileSplitAssignerProvider,
    StreamFormat,
)
from penstock.errors import AccessDenied, ConnectorError, NotFound, UndecodableRecord
from tests.connectors.files.driving import KINDS, Rejecting, base_of

LINES = StreamFormat.text_line_format()
COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    quick = Retries(attempts=3, delay=0.001)
    monkeypatch.setattr(file_source, "RETRIES", quick)
    monkeypatch.setattr(storage, "_WAITS", (0.001,) * storage.ATTEMPTS)


@pytest.fixture(params=KINDS)
def base(request, tmp_path):
    return base_of(request.param, tmp_path)


def put(base, **files):
    """Write files; two underscores in a name are a folder, one at the end a dot."""
    fs, root = fsspec.core.url_to_fs(base)
    for name, data in files.items():
        path = f"{root}/{name.replace('__', '/')}"
        fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        fs.pipe_file(path, data.encode() if isinstance(data, str) else data)


def source(*paths, split_bytes=None, format=LINES):
    builder = FileSource.for_record_stream_format(format, *paths)
    if split_bytes:
        builder.set_file_enumerator(FileEnumeratorProvider.default_splittable_file_enumerator(split_bytes))
    return builder.build()


def found(*paths, **settings):
    splits = source(*paths, **settings).create_enumerator().discover()
    return [(split.path.rpartition("/")[2], split.start, split.end) for split in splits]


def reader(made, splits, context=None):
    made = pickle.loads(pickle.dumps(made))
    opened = made.create_reader(context or Rejecting())
    opened.add_splits(splits)
    return opened


def drain(opened, most=3):
    """All records, and whether every split was told to be at its end."""
    values, ended = [], []
    while opened.waits():
        for fetched in opened.fetch(most, 0.0):
            values.extend(fetched.values)
            ended.extend([fetched.split_id] * fetched.last)
    assert len(set(ended)) == len(ended)
    return values


def read(*paths, **settings):
    made = source(*paths, **settings)
    return drain(reader(made, made.create_enumerator().discover()))


class TestFinding:
    def test_one_file(self, base):
        put(base, a="1\n2\n")
        assert found(f"{base}/a") == [("a", 0, 4)]

    def test_all_files_below_a_folder_but_hidden_ones(self, base):
        put(base, **{"b": "1", "a": "2", "sub__deep__c": "3", ".x": "4", "_y": "5", ".git__z": "6", "sub___t__u": "7"})
        assert [name for name, _, _ in found(base)] == ["a", "b", "c"]

    def test_a_hidden_file_that_is_named(self, base):
        put(base, _a="1")
        assert [name for name, _, _ in found(f"{base}/_a")] == ["_a"]

    def test_patterns(self, base):
        put(base, **{"a.txt": "1", "b.txt": "2", "c.csv": "3", "day__d.txt": "4", "_h.txt": "5", "day__.e": "6"})
        put(base, **{"_old__x.txt": "7", "day__.old__y.txt": "8"})
        assert [name for name, _, _ in found(f"{base}/*.txt")] == ["a.txt", "b.txt"]
        assert [name for name, _, _ in found(f"{base}/d*")] == ["d.txt"]
        assert [name for name, _, _ in found(f"{base}/**/*.txt")] == ["a.txt", "b.txt", "d.txt"]
        assert [name for name, _, _ in found(f"{base}/_old/*")] == ["x.txt"]

    def test_a_file_whose_name_looks_like_a_pattern(self, base):
        put(base, **{"a[1].txt": "x"})
        assert [name for name, _, _ in found(f"{base}/a[1].txt")] == ["a[1].txt"]
        assert read(base) == ["x"]

    def test_several_paths_and_no_file_twice(self, base):
        put(base, a="1", b="2")
        assert [name for name, _, _ in found(f"{base}/b", base)] == ["b", "a"]

    def test_nothing_there(self, base):
        for path in (f"{base}/none", f"{base}/*.none"):
            with pytest.raises(NotFound, match=r"there is no file at .*none"):
                found(path)

    def test_an_empty_folder(self, tmp_path):
        with pytest.raises(NotFound, match=f"there is no file at file://{tmp_path}"):
            found(str(tmp_path))

    def test_empty_files_have_no_records(self, base):
        put(base, a="", b="1\n")
        assert found(base) == [("b", 0, 2)]

    def test_pieces(self, base):
        put(base, a="x" * 25)
        assert found(base, split_bytes=10) == [("a", 0, 10), ("a", 10, 20), ("a", 20, 25)]

    def test_no_pieces_if_the_source_or_the_format_says_so(self, base):
        put(base, a="x" * 25)
        assert found(base, split_bytes=10, format=StreamFormat.text_line_format("utf-16")) == [("a", 0, 25)]
        whole = FileEnumeratorProvider.default_non_splittable_file_enumerator()
        made = FileSource.for_record_stream_format(LINES, base).set_file_enumerator(whole).build()
        assert [(split.start, split.end) for split in made.create_enumerator().discover()] == [(0, 25)]

    def test_a_folder_that_changes_while_it_is_listed(self, tmp_path, monkeypatch):
        (tmp_path / "a").write_text("1")
        fails = iter([True, True])
        find = fsspec.implementations.local.LocalFileSystem.find

        def shaky(self, path, **settings):
            if next(fails, False):
                raise FileNotFoundError(f"{path}/gone")
            return find(self, path, **settings)

        monkeypatch.setattr(fsspec.implementations.local.LocalFileSystem, "find", shaky)
        assert [name for name, _, _ in found(str(tmp_path))] == ["a"]


class TestReading:
    def test_lines_of_all_files(self, base):
        put(base, a="1\n2\n", b="3")
        assert read(base) == ["1", "2", "3"]

    @settings(max_examples=80, deadline=None)
    @given(
        st.lists(st.lists(st.text("aé\r", max_size=6)), min_size=1, max_size=4),
        st.integers(1, 20),
        st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), max_size=12),
    )
    def test_stops_and_other_parallelism_lose_nothing(self, files, split_bytes, steps):
        """After every few reads all readers go, and others, perhaps more or fewer, take over their splits."""
        fs = fsspec.filesystem("memory")
        fs.store.clear()
        texts = ["".join(f"{line}\n" for line in content) for content in files]
        put("memory://resume", **{f"f{i}": text for i, text in enumerate(texts)})
        made = source("memory://resume/f*", split_bytes=split_bytes)
        splits, values = list(made.create_enumerator().discover()), []
        for most, parallelism in steps:
            readers = [reader(made, splits[index::parallelism]) for index in range(parallelism)]
            values += [value for one in readers for fetched in one.fetch(most, 0.0) for value in fetched.values]
            splits = pickle.loads(pickle.dumps([split for one in readers for split in one.snapshot_state()]))
        values += drain(reader(made, splits))
        expected = [line for text in texts for line in text.replace("\r\n", "\n").split("\n")[:-1]]
        assert sorted(values) == sorted(expected)

    @pytest.mark.parametrize("extension", COMPRESS)
    def test_compressed_files_are_read_whole(self, base, extension):
        text = "".join(f"line {n}\n" for n in range(5000))
        put(base, **{f"a.{extension}": COMPRESS[extension](text.encode())})
        made = source(base, split_bytes=10)
        (split,) = made.create_enumerator().discover()
        first = reader(made, [split])
        values = list(first.fetch(1200, 0.0)[0].values)
        (rest,) = first.snapshot_state()
        values += drain(reader(made, [rest]), most=1000)
        assert values == text.splitlines()

    def test_zstd_files_of_several_frames_seek_both_ways(self):
        data = COMPRESS["zst"](b"0123456789") + COMPRESS["zst"](b"abcdefghij")
        file = access.COMPRESSIONS[".zst"](io.BytesIO(data))
        assert (file.read(3), file.seek(12), file.read()) == (b"012", 12, b"cdefghij")
        assert (file.seek(4), file.read(2), file.seek(2, io.SEEK_CUR), file.read(1)) == (4, b"45", 8, b"8")
        with pytest.raises(io.UnsupportedOperation):
            file.seek(0, io.SEEK_END)

    @pytest.mark.parametrize("extension", COMPRESS)
    def test_a_damaged_compressed_file_is_named(self, tmp_path, extension):
        data = COMPRESS[extension]("".join(f"{n * n}\n" for n in range(3000)).encode())
        (tmp_path / f"a.{extension}").write_bytes(data[: len(data) // 2])
        with pytest.raises(UndecodableRecord, match=rf"a\.{extension} cannot be decompressed, because it is damaged"):
            read(str(tmp_path))

    def test_what_only_looks_compressed(self, tmp_path):
        for extension in COMPRESS:
            (tmp_path / f"a.{extension}").write_text("plain text, and not what the name says")
            with pytest.raises(UndecodableRecord, match="is damaged"):
                read(str(tmp_path / f"a.{extension}"))

    def test_a_file_that_was_deleted_before_it_was_read(self, base):
        put(base, a="1\n")
        made = source(base)
        splits = made.create_enumerator().discover()
        fs, root = fsspec.core.url_to_fs(base)
        fs.rm_file(f"{root}/a")
        with pytest.raises(NotFound, match=r"the file .*/a does not exist, or no longer"):
            drain(reader(made, splits))

    def test_a_file_that_must_not_be_read(self, tmp_path, monkeypatch):
        (tmp_path / "a").write_text("1\n")

        def refuse(self, path):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(access.Files, "_open", refuse)
        with pytest.raises(AccessDenied, match=r"no access to .*/a"):
            read(str(tmp_path))


class Failing(io.BytesIO):
    """A file whose reads fail at these places, once each."""

    def __init__(self, data, failures):
        super().__init__(data)
        self._failures = failures

    def read(self, size=-1):
        if self._failures and self.tell() >= self._failures[0]:
            self._failures.pop(0)
            raise OSError(5, "Input/output error")
        return super().read(size)


class TestPassingErrors:
    @pytest.fixture
    def failures(self, tmp_path, monkeypatch):
        """Places in the file at which reads fail; blocks are small, so that there are several."""
        from penstock.formats import file_lines as _lines

        places = []
        monkeypatch.setattr(_lines, "BLOCK_BYTES", 50)
        monkeypatch.setattr(access.Files, "_open", lambda self, path: Failing(self.fs.cat_file(path), places))
        return places

    def test_reading_goes_on_at_the_last_place(self, tmp_path, failures):
        (tmp_path / "a").write_text("".join(f"{n}\n" for n in range(200)))
        failures += [0, 150, 400]
        assert read(str(tmp_path)) == [str(n) for n in range(200)]
        assert failures == []

    def test_too_many(self, tmp_path, failures):
        (tmp_path / "a").write_text("1\n")
        failures += [0] * 9
        with pytest.raises(ConnectorError, match=r"reading file:.*/a failed 3 times. The last error was: .*Input"):
            read(str(tmp_path))

    def test_bad_records_are_told_once(self, tmp_path, failures):
        (tmp_path / "a").write_bytes(b"good\n\xff\n" * 30)
        failures += [50, 100]
        context = Rejecting(fails=False)
        made = source(str(tmp_path))
        assert drain(reader(made, made.create_enumerator().discover(), context), most=8) == ["good"] * 30
        assert len(context.rejected) == 30
        assert failures == []


class TestBadRecords:
    def test_they_name_file_and_place(self, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"ab\n\xff\ncd\n")
        with pytest.raises(UndecodableRecord, match=rf"the record at file://{tmp_path}/a\.txt line at byte 3 cannot"):
            read(str(tmp_path))

    def test_they_can_be_skipped(self, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"ab\n\xff\ncd\n")
        context = Rejecting(fails=False)
        made = source(str(tmp_path))
        assert drain(reader(made, made.create_enumerator().discover(), context)) == ["ab", "cd"]
        assert context.rejected == [(b"\xff", f"file://{tmp_path}/a.txt line at byte 3")]

    def test_a_file_that_is_not_of_its_format_is_named(self, tmp_path):
        (tmp_path / "a.txt").write_bytes(b"abc")
        with pytest.raises(UndecodableRecord, match=rf"file://{tmp_path}/a\.txt: the file is not utf-16-le"):
            read(str(tmp_path), format=StreamFormat.text_line_format("utf-16-le"))


class TestWatching:
    def watching(self, base, state=None):
        made = FileSource.for_record_stream_format(LINES, base).monitor_continuously(Duration.of_millis(50)).build()
        enumerator = made.create_enumerator()
        if state is not None:
            enumerator.restore_state(pickle.loads(pickle.dumps(state)))
        return enumerator

    def names(self, enumerator):
        return [split.path.rpartition("/")[2] for split in enumerator.discover()]

    def test_new_files_are_found_once(self, base):
        enumerator = self.watching(base)
        assert (enumerator.discovery_interval, self.names(enumerator)) == (0.05, [])
        put(base, a="1")
        assert self.names(enumerator) == ["a"]
        put(base, b="2", sub__c="3")
        assert self.names(enumerator) == ["b", "c"]
        assert self.names(enumerator) == []

    def test_a_modified_file_is_read_again_where_that_is_wanted(self, tmp_path):
        made = FileSource.for_record_stream_format(LINES, str(tmp_path)).monitor_continuously(50)
        only_new, enumerator = self.watching(str(tmp_path)), made.reread_modified_files().build().create_enumerator()
        file = tmp_path / "a"
        file.write_text("1\n")
        os.utime(file, (1, 1))
        (first,) = enumerator.discover()
        assert (self.names(enumerator), self.names(only_new)) == ([], ["a"])
        file.write_text("1\n2\n")
        (again,) = enumerator.discover()
        assert (again.start, again.end, again.path) == (0, 4, first.path)
        assert again.split_id != first.split_id
        assert (self.names(enumerator), self.names(only_new)) == ([], [])
        successor = made.build().create_enumerator()
        successor.restore_state(enumerator.snapshot_state())
        assert self.names(successor) == []

    def test_files_of_an_older_savepoint_are_read_again_only_once_modified(self, tmp_path):
        made = FileSource.for_record_stream_format(LINES, str(tmp_path)).monitor_continuously(50)
        file, older = tmp_path / "a", self.watching(str(tmp_path))
        file.write_text("1\n")
        os.utime(file, (1, 1))
        assert self.names(older) == ["a"]
        enumerator = made.reread_modified_files().build().create_enumerator()
        enumerator.restore_state(older.snapshot_state())
        assert self.names(enumerator) == []
        file.write_text("2\n")
        assert self.names(enumerator) == ["a"]
        assert self.names(enumerator) == []

    def test_a_successor_knows_what_was_found(self, base):
        enumerator = self.watching(base)
        put(base, a="1", b="1")
        self.names(enumerator)
        state = enumerator.snapshot_state()
        put(base, c="1")
        self.names(enumerator)
        assert self.names(self.watching(base, state)) == ["c"]

    def test_what_is_remembered_is_small(self, base):
        enumerator = self.watching(base)
        put(base, **{"a-very-long-name-" + "x" * 100 + str(n): "1" for n in range(50)})
        assert len(self.names(enumerator)) == 50
        assert len(enumerator.snapshot_state()) == 50 * 12

    def test_a_file_is_not_taken_while_it_is_empty_or_hidden(self, base):
        enumerator = self.watching(base)
        put(base, **{"a": "", ".part-1.inprogress": "1"})
        assert self.names(enumerator) == []
        put(base, a="1")
        assert self.names(enumerator) == ["a"]

    def test_a_fixed_set_stays_as_it_was_after_a_recovery(self, base):
        put(base, a="1")
        enumerator = source(base).create_enumerator()
        enumerator.discover()
        successor = source(base).create_enumerator()
        successor.restore_state(enumerator.snapshot_state())
        put(base, b="1")
        assert successor.discover() == ()

    def test_a_job_that_read_a_fixed_set_can_go_on_watching(self, base):
        put(base, a="1")
        enumerator = source(base).create_enumerator()
        enumerator.discover()
        put(base, b="1")
        assert self.names(self.watching(base, enumerator.snapshot_state())) == ["b"]


class TestBuilding:
    def test_boundedness(self):
        builder = FileSource.for_record_stream_format(LINES, "/x")
        assert builder.build().get_boundedness() is Boundedness.BOUNDED
        assert builder.monitor_continuously(100).build().get_boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
        assert builder.process_static_file_set().build().get_boundedness() is Boundedness.BOUNDED

    def test_a_bulk_format(self, base):
        class Whole(BulkFormat):
            """One record a file: its bytes."""

            def open(self, file, start, end, position, reject):
                return WholeReader(file.read(), position)

        class WholeReader:
            def __init__(self, data, position):
                self._data, self.finished = data, position is not None

            def read(self, most):
                self.finished = True
                return [self._data]

            def position(self):
                return True

            def close(self):
                pass

        put(base, a="1\n2\n", b="3")
        made = FileSource.for_bulk_file_format(Whole(), base).build()
        opened = made.create_reader(Rejecting())
        opened.add_splits(made.create_enumerator().discover())
        assert drain(opened) == [b"1\n2\n", b"3"]

    def test_the_split_assigner_is_taken(self):
        builder = FileSource.for_record_stream_format(LINES, "/x")
        assert builder.set_split_assigner(FileSplitAssignerProvider.locality_aware_split_assigner()) is builder

    def test_a_split_has_an_id(self):
        assert FileSplit("file:///a", 5, 9).split_id == "file:///a@5"

    @pytest.mark.parametrize(
        ("call", "error", "message"),
        [
            (lambda: FileSource.for_record_stream_format(LINES), ValueError, "at least one path"),
            (
                lambda: FileSource.for_record_stream_format("text", "/x"),
                TypeError,
                "must be a StreamFormat, not 'text'",
            ),
            (lambda: FileSource.for_bulk_file_format("text", "/x"), TypeError, "must be a BulkFormat, not 'text'"),
            (lambda: TestBuilding.builder().monitor_continuously(0), ValueError, "longer than zero"),
            (lambda: TestBuilding.builder().set_file_enumerator(1), TypeError, "FileEnumeratorProvider"),
            (lambda: TestBuilding.builder().set_split_assigner(1), TypeError, "FileSplitAssignerProvider"),
            (
                lambda: FileEnumeratorProvider.default_splittable_file_enumerator(0),
                ValueError,
                "at least one byte, not 0",
            ),
        ],
    )
    def test_what_makes_no_sense_is_said_at_once(self, call, error, message):
        with pytest.raises(error, match=message):
            call()

    @staticmethod
    def builder():
        return FileSource.for_record_stream_format(LINES, "/x")
