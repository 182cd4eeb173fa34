"""What a slot writes into a checkpoint: read back as it was, or refused by the name of the file."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from penstock.base.storage import Storage, split_url
from penstock.engine.state.snapshot_file import MAGIC, FileRef, Kind, Name, SnapshotFile, State, write_file
from penstock.errors import CorruptSnapshot, StorageError

FEW = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
NEVER_INLINE = 0

names = st.builds(Name, st.sampled_from(["map-1", "üid"]), st.sampled_from(Kind), st.text(max_size=4), st.just(""))
contents = st.dictionaries(names, st.lists(st.binary(max_size=40), max_size=3), max_size=4)


def written(url, content, compress=False, inline_below=NEVER_INLINE):
    states = [State(name, pages) for name, pages in content.items()]
    return write_file(url, states, compress=compress, inline_below=inline_below)


def everything(ref):
    with SnapshotFile(ref) as file:
        return {name: list(file.pages(name)) for name in file.sections}


def raw(ref):
    folder, name = split_url(ref.url)
    return Storage(folder).read(name)


def overwritten(ref, data):
    folder, name = split_url(ref.url)
    Storage(folder).write(name, [data])


CONTENT = {
    Name("map-1", Kind.KEYED, "count"): [b"first page " * 3, b"", b"second"],
    Name("map-1", Kind.TIMERS, "timers"): [],
    Name("source", Kind.OWN, "_own"): [bytes(range(64))],
}


class TestWhatIsWrittenIsRead:
    @FEW
    @given(content=contents, compress=st.booleans(), inline_below=st.sampled_from([0, 1, 60, 1 << 30]))
    def test_any_content(self, memory_url, content, compress, inline_below):
        ref = written(f"{memory_url}/f", content, compress, inline_below)
        assert everything(ref) == content

    @FEW
    @given(content=contents, inline_below=st.sampled_from([0, 60, 1 << 30]))
    def test_the_size_of_each_operators_state_is_known(self, memory_url, content, inline_below):
        ref = written(f"{memory_url}/f", content, inline_below=inline_below)
        sizes = {uid: 0 for uid, *_ in content}
        for (uid, *_), pages in content.items():
            sizes[uid] += sum(map(len, pages))
        assert ref.operators == sizes

    @pytest.mark.parametrize("compress", [False, True])
    def test_on_every_file_system(self, place, compress):
        ref = written(f"{place}/chk-1/slot-0", CONTENT, compress)
        assert everything(ref) == CONTENT
        assert ref.inline is None and ref.size == len(raw(ref))

    def test_compression_makes_it_smaller(self, memory_url):
        content = {Name("u", Kind.KEYED, "s"): [b"over and over " * 100]}
        sizes = [written(f"{memory_url}/{n}", content, compress).size for n, compress in enumerate([False, True])]
        assert sizes[1] < sizes[0] / 5

    def test_one_section_is_read_without_the_others(self, memory_url):
        """A changed bit harms its own state only."""
        ref = written(f"{memory_url}/f", CONTENT)
        data = bytearray(raw(ref))
        data[len(MAGIC) + 3] ^= 1
        overwritten(ref, bytes(data))
        keyed, timers, own = CONTENT
        with SnapshotFile(ref) as file:
            assert list(file.pages(own)) == CONTENT[own] and list(file.pages(timers)) == []
            with pytest.raises(CorruptSnapshot, match="keyed state 'count' of operator 'map-1' was changed"):
                list(file.pages(keyed))

    def test_pages_come_one_at_a_time(self, memory_url):
        """A page that is read before a damaged one is fine."""
        name = Name("u", Kind.KEYED, "s")
        ref = written(f"{memory_url}/f", {name: [b"a" * 10, b"b" * 10]})
        data = bytearray(raw(ref))
        data[len(MAGIC) + 15] ^= 128
        overwritten(ref, bytes(data))
        with SnapshotFile(ref) as file:
            pages = file.pages(name)
            assert next(pages) == b"a" * 10
            with pytest.raises(CorruptSnapshot):
                next(pages)

    def test_a_state_that_is_not_there_has_no_pages(self, memory_url):
        with SnapshotFile(written(f"{memory_url}/f", CONTENT)) as file:
            assert list(file.pages(Name("nobody", Kind.LIST, "x"))) == []

    def test_states_are_taken_as_they_come(self, memory_url):
        """A file is written while its states are still being made: they never are in memory all at once."""
        seen = []

        def states():
            for n in range(5):
                seen.append(Storage(memory_url).exists("f"))
                yield State(Name("u", Kind.KEYED, str(n)), [bytes(100)])

        write_file(f"{memory_url}/f", states(), compress=False, inline_below=150)
        assert seen[0] is False and seen[-1] is True


class TestInline:
    @FEW
    @given(content=contents, compress=st.booleans(), more=st.integers(-3, 3))
    def test_what_is_smaller_than_the_threshold_is_no_file(self, memory_url, content, compress, more):
        size = written(f"{memory_url}/sized", content, compress).size
        ref = written(f"{memory_url}/f", content, compress, inline_below=size + more)
        there = Storage(memory_url).exists("f")
        Storage(memory_url).delete("f")
        assert (ref.inline is None) is there is (more <= 0)
        assert ref.size == size
        if ref.inline is not None:
            assert len(ref.inline) == size and everything(ref) == content

    def test_inline_content_is_checked_too(self):
        ref = written("driver://job/chk-1/slot-0", CONTENT, inline_below=1 << 30)
        changed = bytearray(ref.inline)
        changed[20] ^= 4
        with pytest.raises(CorruptSnapshot, match="driver://job/chk-1/slot-0"):
            everything(FileRef(ref.url, ref.size, ref.index_at, ref.checksum, bytes(changed)))


class TestDamage:
    @pytest.fixture(params=[False, True], ids=["plain", "compressed"])
    def ref(self, request, memory_url):
        return written(f"{memory_url}/chk-7/slot-0-abc", CONTENT, request.param)

    def found(self, ref):
        with pytest.raises(CorruptSnapshot) as raised:
            everything(ref)
        assert ref.url in str(raised.value)

    @FEW
    @given(data=st.data())
    def test_any_flipped_bit_of_a_state_or_the_index(self, ref, data):
        whole = raw(ref)
        position = data.draw(st.integers(len(MAGIC), len(whole) - 1))
        changed = bytearray(whole)
        changed[position] ^= 1 << data.draw(st.integers(0, 7))
        overwritten(ref, bytes(changed))
        self.found(ref)
        overwritten(ref, whole)
        assert everything(ref) == CONTENT

    def test_a_flipped_bit_of_the_magic_number(self, ref):
        """`snapshot_file.py` promises that a flipped bit anywhere is found."""
        whole = raw(ref)
        for position in range(len(MAGIC)):
            overwritten(ref, whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
            self.found(ref)

    @FEW
    @given(data=st.data())
    @example(None)
    def test_any_truncation(self, ref, data):
        whole = raw(ref)
        overwritten(ref, whole[: 0 if data is None else data.draw(st.integers(0, len(whole) - 1))])
        self.found(ref)
        overwritten(ref, whole)

    @FEW
    @given(at=st.integers(0, 300), more=st.binary(min_size=1, max_size=9))
    def test_anything_put_in_between(self, ref, at, more):
        whole = raw(ref)
        at = min(at, len(whole) - 1)
        overwritten(ref, whole[:at] + more + whole[at:])
        try:
            same = everything(ref) == CONTENT
        except CorruptSnapshot as corrupt:
            assert ref.url in str(corrupt)
        else:
            assert same, "wrong state was read"
        overwritten(ref, whole)

    def test_a_file_that_belongs_to_another_checkpoint(self, ref, memory_url):
        other = written(f"{memory_url}/chk-8/slot-0-abc", {**CONTENT, Name("x", Kind.LIST, "y"): [b"z"]})
        overwritten(ref, raw(other))
        self.found(ref)

    @pytest.mark.parametrize("data", [b"", b"x", bytes(5000), b"PENSTOCK" * 100])
    def test_a_file_that_is_something_else(self, ref, data):
        overwritten(ref, data)
        self.found(ref)

    def test_a_missing_file(self, place):
        ref = written(f"{place}/chk-7/slot-0-abc", CONTENT)
        folder, name = split_url(ref.url)
        Storage(folder).delete(name)
        with pytest.raises(CorruptSnapshot, match=r"chk-7/slot-0-abc' of the checkpoint is missing"):
            SnapshotFile(ref)

    def test_a_missing_folder(self, place):
        with pytest.raises(CorruptSnapshot, match="missing"):
            SnapshotFile(FileRef(f"{place}/nowhere/f", 10, 5, "0"))

    def test_a_storage_that_cannot_be_reached_is_no_damage(self, bucket):
        ref = written(f"{bucket.url}/f", CONTENT)

        def down(number, call):
            raise ConnectionResetError("no route")

        bucket.faults.before = down
        with pytest.raises(StorageError, match="no route"):
            SnapshotFile(ref)


class TestAWriteThatFails:
    @pytest.mark.parametrize("late", [False, True])
    def test_it_is_told(self, bucket, late):
        """Whatever call fails, the caller hears of it: no reference is given to a file that may not be there."""
        written(f"{bucket.url}/f", CONTENT)
        calls = len(bucket.faults.calls)
        for position in range(calls):
            bucket.clear()
            bucket.faults.calls.clear()

            def strike(number, call, position=position):
                if number >= position:
                    raise OSError(28, "No space left on device")

            setattr(bucket.faults, "after" if late else "before", strike)
            with pytest.raises(StorageError, match=r"cannot write 'bucket://place/folder/f'.*No space"):
                written(f"{bucket.url}/f", CONTENT)

    def test_a_passing_failure_of_the_storage_does_not_cost_the_checkpoint(self, bucket):
        """The first call of a write is tried again as any other: nothing of the state has been used up by then."""

        def once(number, call):
            if number == 0:
                raise ConnectionResetError("passing")

        bucket.faults.before = once
        assert everything(written(f"{bucket.url}/f", CONTENT)) == CONTENT
