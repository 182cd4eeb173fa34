"""Files on any file system: made whole or not at all, tried again where that helps."""

import errno
import os
import threading
from contextlib import contextmanager

import pytest
from fsspec.implementations.local import LocalFileSystem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.base.storage import ATTEMPTS, Storage, split_url
from penstock.errors import AlreadyThere, StorageError
from tests.connectors.files import object_store  # noqa: F401 - so that its URLs are known

DATA = bytes(range(50))
PASSING = [errno.EIO, errno.ECONNRESET, errno.ETIMEDOUT, errno.EAGAIN, None]
LASTING = [
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENAMETOOLONG,
    errno.ENOTDIR,
]


def error(code):
    return OSError("it went away") if code is None else OSError(code, os.strerror(code))


class TestFilesOnEveryFileSystem:
    def test_what_is_written_is_read(self, place):
        storage = Storage(place)
        assert storage.write("a/b", [b"one", b"", b"two"]) == 6
        assert storage.read("a/b") == b"onetwo"
        with storage.open("a/b") as file:
            file.seek(2)
            assert file.read(2) == b"et"
        assert storage.exists("a/b") and not storage.exists("a/c")

    def test_pieces_may_come_from_a_generator(self, place):
        assert Storage(place).write("f", (bytes([n]) for n in range(5))) == 5
        assert Storage(place).read("f") == bytes(range(5))

    def test_writing_again_replaces(self, place):
        storage = Storage(place)
        storage.write("f", [b"long before"])
        storage.write("f", [b"now"])
        assert storage.read("f") == b"now"

    def test_what_is_not_there(self, place):
        storage = Storage(place)
        assert storage.names() == [] and not storage.exists("f")
        for read in (storage.read, storage.open):
            with pytest.raises(FileNotFoundError):
                read("f")
        storage.delete("f")
        storage.delete_empty_folder("folder")

    def test_a_folder_goes_only_if_it_is_empty(self, tmp_path):
        storage = Storage(f"file://{tmp_path}")
        storage.write("a/f", [b"1"])
        storage.delete_empty_folder("a")
        assert storage.names() == ["a/f"]
        storage.delete("a/f")
        storage.delete_empty_folder("a")
        assert os.listdir(tmp_path) == []

    def test_urls_name_the_file_system(self, place):
        url = Storage(place).url("a/f")
        assert url == f"{Storage(place).url()}/a/f" and url.startswith(place.partition(":")[0])
        folder, name = split_url(url)
        Storage(folder).write(name, [b"1"])
        assert Storage(place).read("a/f") == b"1"

    @pytest.mark.parametrize("name", ["with blank", "per%20cent", "ha#sh", "ques?tion", "ümlaut", "a:b", "st*r", "[x]"])
    def test_names_are_taken_as_they_are(self, tmp_path, name):
        storage = Storage(f"file://{tmp_path}/{name}")
        storage.create(name, b"1")
        assert storage.names() == [name] and storage.read(name) == b"1"
        assert Storage(split_url(storage.url(name))[0]).read(name) == b"1"

    def test_a_plain_path_is_a_place_too(self, tmp_path):
        Storage(f"{tmp_path}/x/").create("f", b"1")
        assert Storage(f"file://{tmp_path}/x").read("f") == b"1"

    def test_the_host_stays_in_urls(self):
        """Paths on HDFS or SFTP contain no host, but slots find the storage by its URL."""
        storage = Storage("objects://host/a/b/")
        assert storage.url() == "objects://host/a/b" and storage.url("c/../d") == "objects://host/a/b/d"
        assert storage.url("../../e") == "objects://host/e" and storage.name("objects://host/a/f") == "../f"

    @pytest.mark.parametrize("url", ["nonsense://x", "s3nope://bucket/x"])
    def test_an_unknown_file_system_is_named(self, url):
        with pytest.raises(StorageError, match=url):
            Storage(url)

    @settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.data())
    def test_names_and_delete_against_a_dict(self, memory_url, data):
        """Files come and go; what is listed is what is there."""
        storage, model = Storage(memory_url), {}
        for name in storage.names():
            storage.delete(name)
        names = st.sampled_from(["a", "b/c", "b/d", "b/e/f", "g"])
        for _ in range(data.draw(st.integers(1, 12))):
            name, content = data.draw(names), data.draw(st.binary(max_size=3))
            match data.draw(st.sampled_from(["write", "create", "delete"])):
                case "write":
                    storage.write(name, [content])
                    model[name] = content
                case "create" if name in model:
                    with pytest.raises(StorageError, match="exists already"):
                        storage.create(name, content)
                case "create":
                    storage.create(name, content)
                    model[name] = content
                case "delete":
                    storage.delete(name)
                    model.pop(name, None)
            assert storage.names() == sorted(model)
            assert {n: storage.read(n) for n in model} == model


class TestListing:
    @pytest.fixture
    def listing(self, tmp_path, monkeypatch):
        """A folder with a folder in it, whose listing fails first with these errors."""
        failures, ls = [], LocalFileSystem.ls

        def shaky(self, path, *arguments, **settings):
            if path.endswith("/b") and failures:
                raise failures.pop(0)
            return ls(self, path, *arguments, **settings)

        monkeypatch.setattr(LocalFileSystem, "ls", shaky)
        storage = Storage(f"{tmp_path}/x")
        for name in ("a", "b/c", "b/d"):
            storage.write(name, [b"1"])
        return storage, failures

    @pytest.mark.parametrize("failure", [OSError(errno.EIO, "broken"), FileNotFoundError("it has just gone")])
    def test_a_folder_that_cannot_be_listed_is_not_left_out(self, listing, failure):
        """fsspec's own `find` would leave it out, and a job would not see its checkpoints."""
        storage, failures = listing
        failures += [failure] * 2
        assert storage.names() == ["a", "b/c", "b/d"] and failures == []

    def test_at_last_it_is_an_error(self, listing):
        storage, failures = listing
        failures += [OSError(errno.EIO, "broken")] * 100
        with pytest.raises(StorageError, match=r"cannot list '.*/x': .*broken"):
            storage.names()


class TestCreate:
    def test_a_file_is_made_once(self, place):
        storage = Storage(place)
        storage.create("a/f", b"first")
        with pytest.raises(StorageError, match=r"a/f' exists already"):
            storage.create("a/f", b"second")
        assert storage.read("a/f") == b"first"
        assert storage.names() == ["a/f"], "drafts are left behind"

    def test_only_one_of_many_makers_wins(self, tmp_path):
        storage, outcomes, ready = Storage(f"file://{tmp_path}/x"), [], threading.Barrier(8)

        def make(content):
            ready.wait()
            try:
                storage.create("f", content)
                outcomes.append(content)
            except StorageError as refused:
                assert "exists already" in str(refused)

        threads = [threading.Thread(target=make, args=[bytes([n]) * 1000]) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes == [storage.read("f")] and storage.names() == ["f"]

    @pytest.mark.parametrize("kind", ["bucket", "shelf"])
    def test_a_file_that_someone_else_makes_meanwhile_is_not_overwritten(self, kind, request):
        """Between the look for the file and the making of it another driver may publish under the same name."""
        remote = request.getfixturevalue(kind)

        def other(number, call):
            if call == "exists":
                remote.put("f", b"theirs")

        remote.faults.after = other
        with pytest.raises(StorageError, match="exists already"):
            Storage(remote.url).create("f", DATA)
        assert remote.content("f") == b"theirs"

    @pytest.mark.parametrize("moment", ["exists", "open", "initiate", "upload"])
    def test_an_object_store_says_at_the_last_moment_whether_it_is_there(self, bucket, moment):
        def other(number, call):
            if call == moment:
                bucket.put("f", b"theirs")

        bucket.faults.after = other
        with pytest.raises(StorageError, match="exists already"):
            Storage(bucket.url).create("f", DATA)
        assert bucket.content("f") == b"theirs"

    def test_an_object_store_needs_no_folders(self, bucket):
        """For s3fs to make a folder is to make its bucket, so that a mistyped name would become a new bucket."""
        Storage(bucket.url).create("a/f", DATA)
        Storage(bucket.url).write("a/g", [DATA])
        Storage(bucket.url).delete_empty_folder("a")
        assert not {"makedirs", "rmdir"} & set(bucket.faults.calls)

    @pytest.mark.parametrize("refusal", [TypeError("unexpected keyword 'mode'"), NotImplementedError()])
    def test_a_client_that_cannot_create_is_told_of_and_replaces_nothing(self, bucket, refusal, monkeypatch):
        def pipe_file(self, path, value, mode="overwrite", **_):
            if mode != "overwrite":
                raise refusal
            raise AssertionError("it would be replaced")

        monkeypatch.setattr(bucket, "pipe_file", pipe_file)
        with pytest.raises(
            StorageError, match=r"cannot create a file on the condition that it does not exist. Install version 2024.12"
        ) as no:
            Storage(bucket.url).create("f", DATA)
        assert no.value.lasting and bucket.content("f") is None

    @pytest.mark.parametrize("named", [True, False])
    def test_a_condition_that_failed(self, bucket, named, monkeypatch):
        """Some servers say which condition it was, and s3fs makes FileExistsError of it; others do not."""

        def pipe_file(self, path, value, mode="overwrite", **_):
            failed = FileExistsError("at least one") if named else OSError(errno.EINVAL, "at least one")
            failed.__cause__ = Refused()
            raise failed

        monkeypatch.setattr(bucket, "pipe_file", pipe_file)
        bucket.put("f", b"theirs")
        with pytest.raises(AlreadyThere, match="f' exists already"):
            Storage(bucket.url)._place("f", DATA)
        bucket.put("f", DATA)
        Storage(bucket.url)._place("f", DATA)

    def test_a_file_that_came_and_went_is_made_after_all(self, bucket):
        """Somebody else's file is in the way, and is gone when it is looked at."""

        def theirs(number, call):
            if call == "finish" and "cat_file" not in bucket.faults.calls:
                bucket.put("f", b"theirs")
            if call == "cat_file":
                bucket.files.clear()

        bucket.faults.before = theirs
        Storage(bucket.url)._place("f", DATA)
        assert bucket.content("f") == DATA and "cat_file" in bucket.faults.calls

    def test_whether_a_storage_refuses_the_second_is_tried_out(self, bucket, shelf, monkeypatch):
        """A rename may replace, or refuse with an error, or refuse in silence."""
        assert Storage(bucket.url).is_exclusive()
        assert not Storage(shelf.url).is_exclusive()
        replace = shelf._rename

        def refuse(self, path1, path2):
            if path2 in self.files:
                raise FileExistsError(path2)
            replace(self, path1, path2)

        def ignore(self, path1, path2):
            if path2 not in self.files:
                replace(self, path1, path2)

        for rename in (refuse, ignore):
            monkeypatch.setattr(shelf, "_rename", rename)
            assert Storage(shelf.url).is_exclusive()
        assert not shelf.files and not bucket.files

    def test_a_rename_that_is_refused_in_silence(self, shelf, monkeypatch):
        """WebHDFS refuses in this way if somebody else has made the file since it was looked for."""

        def theirs(self, path1, path2):
            self.files[path2] = b"theirs"

        monkeypatch.setattr(shelf, "_rename", theirs)
        with pytest.raises(AlreadyThere):
            Storage(shelf.url).create("f", DATA)
        assert shelf.content("f") == b"theirs"

    def test_an_own_file_of_which_a_part_is_read_is_not_that_of_somebody_else(self, shelf, monkeypatch):
        """A rename copies the file, but cannot delete the first one, and the copy is not read whole at once."""
        replace, read, parts = shelf._rename, shelf.cat_file, [DATA[:7], b""]

        def copy(self, path1, path2):
            draft = self.files[path1]
            replace(self, path1, path2)
            self.files[path1] = draft
            raise error(errno.EIO)

        monkeypatch.setattr(shelf, "_rename", copy)
        monkeypatch.setattr(shelf, "cat_file", lambda self, *a, **k: parts.pop() if parts else read(self, *a, **k))
        Storage(shelf.url).create("f", DATA)
        assert shelf.content("f") == DATA and not parts

    def test_who_has_made_a_file_stays_open_if_only_a_part_can_be_read(self, bucket):
        bucket.put("f", DATA[:7])
        with pytest.raises(StorageError, match="only a part of it was read") as unclear:
            Storage(bucket.url)._place("f", DATA)
        assert not isinstance(unclear.value, AlreadyThere)

    def test_a_file_system_without_hard_links_is_named(self, tmp_path, monkeypatch):
        def refuse(source, path):
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)
        with pytest.raises(StorageError, match="the file system does not support hard links"):
            Storage(str(tmp_path)).create("f", DATA)
        assert os.listdir(tmp_path) == []

    def test_wherever_it_fails_the_file_is_whole_or_not_there(self, faulty):
        for fault in every_fault(faulty):
            faulty.clear()
            attempt(lambda: Storage(faulty.url).create("f", DATA), fault)
            assert faulty.content("f") in (None, DATA), fault

    def test_wherever_it_fails_an_existing_file_stays(self, faulty):
        for fault in every_fault(faulty):
            faulty.clear()
            faulty.put("f", b"before")
            assert not attempt(lambda: Storage(faulty.url).create("f", DATA), fault), fault
            assert faulty.content("f") == b"before", fault

    def test_what_fails_once_is_tried_again(self, faulty):
        for fault in every_fault(faulty, forever=[False], codes=PASSING):
            faulty.clear()
            assert attempt(lambda: Storage(faulty.url).create("f", DATA), fault), fault
            assert faulty.content("f") == DATA, fault

    def test_what_fails_for_good_is_told(self, faulty):
        for fault in every_fault(faulty, forever=[True], codes=[errno.ENOSPC]):
            faulty.clear()
            made = attempt(lambda: Storage(faulty.url).create("f", DATA), fault)
            # A draft that cannot be removed is left behind; the file is there all the same.
            assert not made or faulty.content("f") == DATA, fault


class Refused(Exception):
    """An answer of 412, as botocore tells it."""

    response = {"ResponseMetadata": {"HTTPStatusCode": 412}}


class Fault:
    """One call that fails, by its position, before or after it took effect; once, or from then on."""

    def __init__(self, where, position, late, forever, code):
        self.where, self.position, self.late, self.forever, self.code = where, position, late, forever, code

    def __repr__(self):
        call = self.where.clean[self.position] if self.position < len(self.where.clean) else "?"
        return (
            f"{'after' if self.late else 'before'} call {self.position} ({call}) "
            f"{'for ever' if self.forever else 'once'} with {self.code and errno.errorcode[self.code]}"
        )

    def strike(self, number, call):
        if number == self.position or (self.forever and number > self.position):
            raise error(self.code)

    @contextmanager
    def at_work(self):
        faults = self.where.faults
        faults.calls.clear()
        setattr(faults, "after" if self.late else "before", self.strike)
        try:
            yield
        finally:
            faults.before = faults.after = lambda number, call: None


def every_fault(where, forever=(False, True), codes=(errno.EIO, errno.ENOSPC)):
    """Every way in which one making of a file can go wrong."""
    where.clear()
    where.faults.calls.clear()
    Storage(where.url).create("f", DATA)
    where.clean = list(where.faults.calls)
    assert len(where.clean) >= 4
    return [
        Fault(where, position, late, for_ever, code)
        for position in range(len(where.clean))
        for late in (False, True)
        for for_ever in forever
        for code in codes
    ]


def attempt(action, fault):
    """Whether it worked; a storage that fails says so with an error of its own that names the file."""
    with fault.at_work():
        try:
            action()
        except StorageError as failed:
            assert "folder/f" in str(failed), fault
            return False
    return True


class TestTryingAgain:
    ACTIONS = {
        "write": lambda storage: storage.write("f", [DATA[:9], DATA[9:]]),
        "create": lambda storage: storage.create("g", DATA),
        "read": lambda storage: storage.read("old"),
        "open": lambda storage: storage.open("old").read(),
        "look for": lambda storage: storage.exists("old"),
        "list": lambda storage: storage.names(),
        "delete": lambda storage: storage.delete("old"),
    }
    """By the verb of the message."""

    @pytest.fixture(params=ACTIONS)
    def verb(self, request):
        return request.param

    def failing(self, remote, times, code):
        """Lets the first calls fail, as many as given."""
        remote.put("old", DATA)
        remote.faults.calls.clear()

        def strike(number, call):
            if number < times:
                raise error(code)

        remote.faults.before = strike
        return Storage(remote.url)

    @pytest.mark.parametrize("code", PASSING)
    def test_a_passing_error_is_tried_again(self, bucket, verb, code):
        storage = self.failing(bucket, ATTEMPTS - 1, code)
        result = self.ACTIONS[verb](storage)
        assert result == {"write": 50, "read": DATA, "open": DATA, "look for": True, "list": ["old"]}.get(verb)
        if verb == "write":
            assert bucket.content("f") == DATA, "the pieces are there once"

    @pytest.mark.parametrize("code", PASSING)
    def test_but_not_for_ever(self, bucket, verb, code):
        storage = self.failing(bucket, 1000, code)
        with pytest.raises(StorageError) as raised:
            self.ACTIONS[verb](storage)
        assert len(bucket.faults.calls) == ATTEMPTS
        assert str(error(code)) in str(raised.value) and "bucket://place/folder" in str(raised.value)
        assert f"cannot {'look for' if verb == 'create' else verb} '" in str(raised.value)

    @pytest.mark.parametrize("code", LASTING)
    def test_a_lasting_error_is_not_tried_again(self, bucket, verb, code):
        storage = self.failing(bucket, 1000, code)
        with pytest.raises(StorageError, match=os.strerror(code)):
            self.ACTIONS[verb](storage)
        assert len(bucket.faults.calls) == 1

    def test_an_iterator_cannot_be_written_twice(self, bucket):
        storage = self.failing(bucket, 0, None)
        uploads = []

        def first(number, call):
            if call == "upload":
                uploads.append(number)
                if len(uploads) <= 1:
                    raise error(errno.EIO)

        bucket.faults.before = first
        with pytest.raises(StorageError, match="cannot write"):
            storage.write("f", iter([DATA]))

    def test_tries_are_spaced(self, bucket, monkeypatch):
        waits = []
        monkeypatch.setattr("penstock.base.storage._WAITS", (0.02, 0.1, 0.5, 2.0, 4.0))
        monkeypatch.setattr("penstock.base.storage.time.sleep", waits.append)
        self.failing(bucket, 3, errno.EIO).names()
        assert waits == [0.02, 0.1, 0.5]

    @pytest.mark.parametrize("verb", ["write", "create"])
    def test_writing_into_a_bucket_that_does_not_exist_is_a_storage_error(self, bucket, verb):
        """Object stores say FileNotFoundError then. A caller that writes expects StorageError and nothing else."""

        def missing(number, call):
            if call == "open":
                raise FileNotFoundError("The specified bucket does not exist")

        storage = self.failing(bucket, 0, None)
        bucket.faults.before = missing
        with pytest.raises(StorageError, match="bucket does not exist"):
            self.ACTIONS[verb](storage)

    @pytest.mark.parametrize("phase", [0, 1, 2])
    @pytest.mark.parametrize("kind", ["bucket", "shelf"])
    def test_a_file_system_that_fails_every_third_call(self, kind, phase, request):
        """Every call ends in its result or in StorageError, and nothing is ever half there."""
        remote = request.getfixturevalue(kind)

        def strike(number, call):
            if number % 3 == phase:
                raise error(errno.EIO)

        remote.faults.before = strike
        storage, made = Storage(remote.url), {}
        for n in range(30):
            try:
                storage.create(f"f{n}", DATA)
                made[f"f{n}"] = DATA
            except StorageError:
                assert remote.content(f"f{n}") in (None, DATA)
        for name in made:
            assert storage.read(name) == DATA and storage.exists(name)
            storage.delete(name)
            assert remote.content(name) is None

    def test_deleting_what_an_earlier_try_deleted(self, bucket):
        """The call took effect, and only its answer was lost."""
        storage = self.failing(bucket, 0, None)

        def lost(number, call):
            if number == 0:
                raise error(errno.ECONNRESET)

        bucket.faults.after = lost
        storage.delete("old")
        assert bucket.content("old") is None
