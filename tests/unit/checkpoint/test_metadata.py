"""What makes a heap of files a snapshot: read back as it was, in any place, or refused."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from penstock.base.storage import Storage
from penstock.engine.checkpoint.metadata import FILE, FORMAT, VERSION, Metadata, decode, encode
from penstock.engine.checkpoint.store import (
    FolderStore,
    delete_snapshot,
    dispose_savepoint,
    read_snapshot,
    write_savepoint,
)
from penstock.engine.state.snapshot_file import (
    FileRef,
    Kind,
    Name,
    Shape,
    SlotSnapshot,
    SnapshotFile,
    State,
    checksum,
    write_file,
)
from penstock.errors import CorruptSnapshot, JobDisplaced, NoSuchSnapshot, SnapshotError, StorageError, UnknownFormat

FOLDER = "memory://ckpt/job/chk-3"
SLOW = settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

words = st.text(max_size=6)
numbers = st.integers(0, 2**62)
refs = st.builds(
    FileRef,
    st.sampled_from([f"{FOLDER}/slot-0-a", "memory://ckpt/job/chk-1/slot-1-b", "memory://else where/x#y"]),
    numbers,
    numbers,
    words,
)
inline_refs = st.builds(FileRef, st.just(f"{FOLDER}/slot-0-i"), numbers, numbers, words, st.binary(max_size=20))
schemas = st.dictionaries(
    st.builds(Name, words, st.sampled_from(Kind), words, words), st.fixed_dictionaries({"kind": words}), max_size=3
)
slots = st.builds(SlotSnapshot, st.lists(refs | inline_refs, max_size=3), schemas)
metadatas = st.builds(
    Metadata,
    number=numbers,
    timestamp=numbers,
    job_id=words,
    job_name=words,
    shapes=st.dictionaries(words, st.builds(Shape, numbers, numbers, words, st.booleans()), max_size=3),
    slots=st.lists(slots, max_size=3),
    fingerprint=words,
    savepoint=st.booleans(),
    drained=st.booleans(),
    enumerators=st.dictionaries(words, st.binary(max_size=10), max_size=2),
)


def one(number=3, files=(), savepoint=False, inline=None):
    """Metadata of a job with one slot."""
    refs = [FileRef(url, 10, 5, "c") for url in files]
    if inline is not None:
        refs.append(FileRef("memory://ckpt/job/chk-3/slot-0", len(inline), 0, "c", inline))
    return Metadata(number, 17, "job", "A job", {"m": Shape(1, 128, "Map")}, [SlotSnapshot(refs)], savepoint=savepoint)


EXAMPLE = encode(one(files=[f"{FOLDER}/slot-0-a"], inline=b"state"), FOLDER)
HEAD = EXAMPLE.index(b"\n") + 1


class TestRoundTrip:
    @SLOW
    @given(metadatas)
    def test_what_is_encoded_is_decoded(self, metadata):
        assert decode(encode(metadata, FOLDER), FOLDER) == metadata

    def test_it_is_text(self):
        """Anyone can read the metadata with a text editor."""
        head, body = EXAMPLE.split(b"\n", 1)
        assert head.decode().split()[:2] == [FORMAT, str(VERSION)]
        assert json.loads(body)["operators"]["m"]["parallelism"] == 1

    def test_files_and_size(self):
        metadata = one(files=[f"{FOLDER}/a", f"{FOLDER}/b"], inline=b"12345")
        assert metadata.files() == {f"{FOLDER}/a", f"{FOLDER}/b"}, "what is inline is no file"
        assert metadata.size() == 25


class TestDamage:
    def test_any_flipped_bit_of_the_first_line(self):
        """A flip may turn the version into a newer one; everything else is damage."""
        for position in range(HEAD):
            for bit in range(8):
                changed = bytearray(EXAMPLE)
                changed[position] ^= 1 << bit
                is_newer = (
                    changed[:HEAD].split()[1:2] > [str(VERSION).encode()] and changed[: len(FORMAT)] == FORMAT.encode()
                )
                kind = UnknownFormat if is_newer and changed[:HEAD].split()[1].isdigit() else CorruptSnapshot
                with pytest.raises(kind, match=f"'{FOLDER}/{FILE}'"):
                    pytest.fail(f"bit {bit} of byte {position}: {decode(bytes(changed), FOLDER)}")

    @SLOW
    @given(st.integers(HEAD, len(EXAMPLE) - 1), st.integers(0, 7))
    def test_any_flipped_bit_of_the_rest(self, position, bit):
        changed = bytearray(EXAMPLE)
        changed[position] ^= 1 << bit
        with pytest.raises(CorruptSnapshot, match=f"'{FOLDER}/{FILE}' is truncated or changed"):
            decode(bytes(changed), FOLDER)

    def test_any_truncation(self):
        for length in range(len(EXAMPLE)):
            with pytest.raises(CorruptSnapshot, match=f"'{FOLDER}/{FILE}'"):
                decode(EXAMPLE[:length], FOLDER)

    @SLOW
    @given(st.binary(min_size=1, max_size=20))
    def test_anything_behind_it(self, more):
        with pytest.raises(CorruptSnapshot):
            decode(EXAMPLE + more, FOLDER)

    @SLOW
    @given(st.binary(max_size=80) | st.binary(max_size=20).map(lambda tail: FORMAT.encode() + b" " + tail))
    @example(b"")
    @example(b"\n\n\n")
    @example(b"PENSTOCK and so on")
    @example(f"{FORMAT} ² {checksum(b'{}')}\n{{}}".encode())
    @example(f"{FORMAT} {'9' * 5000} {checksum(b'{}')}\n{{}}".encode())
    def test_a_file_that_is_something_else(self, data):
        with pytest.raises((CorruptSnapshot, UnknownFormat), match=f"'{FOLDER}/{FILE}'"):
            decode(data, FOLDER)

    @pytest.mark.parametrize("version", [VERSION + 1, 7, 10, 12345])
    def test_a_newer_version_says_what_was_found_and_what_is_read(self, version):
        data = EXAMPLE.replace(f"{FORMAT} {VERSION} ".encode(), f"{FORMAT} {version} ".encode())
        with pytest.raises(
            UnknownFormat, match=rf"{FILE}' has format version {version}.*reads up to {VERSION}.*upgrade"
        ):
            decode(data, FOLDER)

    def test_a_newer_version_is_known_even_if_the_rest_is_not(self):
        with pytest.raises(UnknownFormat, match=f"version {VERSION + 1}"):
            decode(f"{FORMAT} {VERSION + 1} whatever\n\x00binary".encode(), FOLDER)


@pytest.fixture
def saved(place):
    """A savepoint with a file and with state that is inline; gives its URL and what the file holds."""
    return make_savepoint(f"{place}/sp"), {Name("m", Kind.KEYED, "s"): [b"content"]}


def make_savepoint(url, number=1):
    state = State(Name("m", Kind.KEYED, "s"), [b"content"])
    storage = Storage(url)
    files = [write_file(f"{storage.url()}/slot-0-x", [state], compress=False, inline_below=0)]
    files.append(write_file(f"{storage.url()}/slot-0-y", [state], compress=False, inline_below=10_000))
    shapes = {"m": Shape(1, 128, "Map")}
    write_savepoint(Metadata(number, 1, "job", "A job", shapes, [SlotSnapshot(files)], savepoint=True), url)
    return storage.url()


def contents(metadata):
    found = []
    for slot in metadata.slots:
        for ref in slot.files:
            with SnapshotFile(ref) as file:
                found.append({name: list(file.pages(name)) for name in file.sections})
    return found


class TestSavepoints:
    def test_it_is_found_by_its_folder_or_its_metadata(self, saved):
        url, held = saved
        for path in (url, f"{url}/", f"{url}/{FILE}"):
            assert contents(read_snapshot(path)) == [held, held]

    def test_it_can_be_moved(self, tmp_path):
        url = make_savepoint(f"file://{tmp_path}/here")
        before = contents(read_snapshot(url))
        shutil.move(tmp_path / "here", tmp_path / "there" / "deeper")
        moved = read_snapshot(f"{tmp_path}/there/deeper")
        assert contents(moved) == before
        assert all("there/deeper" in file for file in moved.files())

    def test_it_is_never_written_over(self, saved):
        url, _ = saved
        with pytest.raises(StorageError, match="exists already"):
            make_savepoint(url, number=99)
        assert read_snapshot(url).number == 1

    def test_disposing_of_it_leaves_nothing_and_no_more(self, place, saved):
        url, _ = saved
        Storage(place).write("sp/notes.txt", [b"mine"])
        dispose_savepoint(url)
        assert Storage(place).names() == ["sp/notes.txt"]

    def test_a_folder_goes_with_its_last_file(self, tmp_path):
        dispose_savepoint(make_savepoint(f"file://{tmp_path}/sp"))
        assert list(tmp_path.iterdir()) == []

    def test_a_checkpoint_is_not_disposed_of(self, place):
        store = FolderStore(place, "job")
        path = store.publish(one(number=4))
        with pytest.raises(NoSuchSnapshot, match=r"chk-4' is a checkpoint.*only savepoints"):
            dispose_savepoint(path)
        assert read_snapshot(path).number == 4

    def test_metadata_goes_first(self, bucket):
        """A deletion that is cut short leaves no snapshot whose files are missing."""
        url = make_savepoint(bucket.url)
        removed = []
        bucket.faults.calls.clear()

        def strike(number, call):
            if call == "rm_file":
                removed.append(number)
                if len(removed) == 2:
                    raise PermissionError(13, "Permission denied")

        bucket.faults.before = strike
        with pytest.raises(StorageError):
            delete_snapshot(url)
        bucket.faults.before = lambda number, call: None
        with pytest.raises(NoSuchSnapshot):
            read_snapshot(url)

    def test_nothing_there(self, place):
        for path in (f"{place}/nothing", place, f"{place}/nothing/{FILE}"):
            with pytest.raises(NoSuchSnapshot, match=f"no checkpoint or savepoint at '{path}'.*no file '{FILE}'"):
                read_snapshot(path)

    def test_the_folder_of_a_job_is_no_snapshot_but_tells_of_them(self, place):
        store = FolderStore(place, "job")
        for number in (2, 10, 9):
            store.publish(one(number=number))
        with pytest.raises(NoSuchSnapshot, match="complete checkpoints below it: chk-2, chk-9, chk-10"):
            read_snapshot(f"{place}/job")

    def test_a_file_instead_of_a_folder(self, tmp_path):
        (tmp_path / "file").write_text("x")
        with pytest.raises(SnapshotError, match=f"{tmp_path}/file"):
            read_snapshot(f"{tmp_path}/file")

    def test_a_folder_instead_of_a_file(self, tmp_path):
        (tmp_path / FILE).mkdir()
        with pytest.raises((SnapshotError, StorageError), match=f"{tmp_path}"):
            read_snapshot(f"{tmp_path}")


class TestTheFolderOfAJob:
    def test_checkpoints_are_found_again_also_after_a_move(self, tmp_path):
        """Files of earlier checkpoints are named relative to the newer one that needs them."""
        store = FolderStore(f"{tmp_path}/a", "job")
        refs = []
        for number in (1, 2):
            state = State(Name("m", Kind.KEYED, "s"), [bytes([number])])
            refs.append(write_file(f"{store.folder(number)}/slot-0-x", [state], compress=False, inline_below=0))
            store.publish(Metadata(number, 1, "job", "A job", {}, [SlotSnapshot(list(refs))]))
        shutil.move(tmp_path / "a", tmp_path / "b" / "c")
        moved = FolderStore(f"{tmp_path}/b/c", "job").complete()
        assert [m.number for m in moved] == [1, 2]
        assert [list(held.values()) for held in contents(moved[1])] == [[[b"\1"]], [[b"\2"]]]

    def test_what_is_not_published_is_not_there(self, place):
        store = FolderStore(place, "job")
        Storage(f"{place}/job").write("chk-5/slot-0-x", [b"a file"])
        assert store.complete() == [] and store.next_number() == 6

    def test_publishing_twice_is_refused(self, place):
        store = FolderStore(place, "job")
        store.publish(one(number=1, inline=b"first"))
        with pytest.raises(StorageError, match=r"chk-1/_metadata' exists already"):
            store.publish(one(number=1, inline=b"second"))
        assert store.read(1).slots[0].files[0].inline == b"first"

    def test_a_torn_checkpoint_is_named_and_the_others_stay(self, place):
        store = FolderStore(place, "job")
        for number in (1, 2):
            store.publish(one(number=number))
        Storage(f"{place}/job").write(f"chk-2/{FILE}", [b"torn"])
        with pytest.raises(CorruptSnapshot, match=r"chk-2/_metadata"):
            store.complete()
        assert store.read(1).number == 1
        assert read_snapshot(store.folder(1)).number == 1

    def test_dropping_deletes_only_what_nobody_needs(self, place):
        store, storage = FolderStore(place, "job"), Storage(f"{place}/job")
        shared, own, newer = (f"{store.folder(n)}/{name}" for n, name in [(1, "shared"), (1, "own"), (2, "newer")])
        for url in (shared, own, newer):
            storage.write(url.removeprefix(f"{storage.url()}/"), [b"x"])
        first, second = one(number=1, files=[shared, own]), one(number=2, files=[shared, newer])
        store.publish(first)
        store.publish(second)
        store.drop([first], [second])
        assert storage.names() == ["chk-1/shared", f"chk-2/{FILE}", "chk-2/newer"]

    def test_files_outside_the_folder_are_not_its_own(self, place):
        """Discarding looks at the job's folder only, also where another folder's name begins like it."""
        store = FolderStore(place, "job")
        for name in ("job/chk-1/f", "job2/chk-1/f", "other/f", "job-savepoints/f"):
            Storage(place).write(name, [b"x"])
        store.discard([f"{Storage(place).url()}/{n}" for n in ("job/chk-1/f", "job2/chk-1/f", "other/f")])
        store.discard([f"{Storage(place).url()}/job-savepoints/f"])
        assert Storage(place).names() == ["job-savepoints/f", "job2/chk-1/f", "other/f"]

    def test_tidying_keeps_what_is_no_checkpoint(self, place):
        store, storage = FolderStore(place, "job"), Storage(f"{place}/job")
        kept = one(number=3, files=[f"{store.folder(1)}/old", f"{store.folder(3)}/new"])
        for name in (
            "chk-1/old",
            "chk-1/older",
            "chk-2/x",
            "chk-3/new",
            "notes",
            "chk-4/slot-0-half",
            "chk-4/_metadata.a.draft",
        ):
            storage.write(name, [b"x"])
        store.publish(kept)
        store.publish(one(number=2))
        store.tidy([kept])
        assert storage.names() == ["chk-1/old", f"chk-3/{FILE}", "chk-3/new", "notes"]

    def test_nothing_is_deleted_that_came_after_the_last_question(self, place):
        """Whoever tidies up may have been displaced meanwhile. It asks once it knows what there is."""
        store = FolderStore(place, "job")
        store.publish(one(number=1))
        store.tidy([], confirm=lambda: store.publish(one(number=2)) and None)
        assert [metadata.number for metadata in store.complete()] == [2]

        def refuse():
            raise JobDisplaced("by another")

        with pytest.raises(JobDisplaced):
            store.tidy([], confirm=refuse)
        assert [metadata.number for metadata in store.complete()] == [2]

    def test_one_that_goes_while_it_is_read_was_given_up(self, place, monkeypatch):
        store = FolderStore(place, "job")
        for number in (1, 2):
            store.publish(one(number=number))
        read = FolderStore.read
        monkeypatch.setattr(FolderStore, "read", lambda self, n: (self.drop([one(number=1)], []), read(self, n))[1])
        assert [metadata.number for metadata in store.complete()] == [2]

    def test_a_deletion_that_fails_is_left_for_later(self, bucket, caplog):
        store = FolderStore(bucket.url, "job")
        first, second = one(number=1, files=[f"{store.folder(1)}/f"]), one(number=2)
        bucket.put("job/chk-1/f", b"x")
        store.publish(first)
        store.publish(second)

        def strike(number, call):
            if call == "rm_file":
                raise PermissionError(13, "Permission denied")

        bucket.faults.before = strike
        store.drop([first], [second])
        store.discard([f"{store.folder(1)}/f"])
        store.tidy([second])
        assert "not deleted" in caplog.text and "chk-1/f" in caplog.text
        bucket.faults.before = lambda number, call: None
        store.tidy([second])
        assert list(bucket.files) == [f"place/folder/job/chk-2/{FILE}"]

    def test_nor_does_a_listing_that_fails_harm_the_job(self, bucket, caplog):
        """Tidying up is no reason to fail: the job has done its work."""
        store = FolderStore(bucket.url, "job")
        store.publish(one(number=1))

        def strike(number, call):
            if call == "find":
                raise PermissionError(13, "Permission denied")

        bucket.faults.before = strike
        store.tidy([])
        assert "not deleted" in caplog.text
