"""The decisions of the checkpoint protocol: for any set of files, nothing that is needed is deleted."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.engine.checkpoint import rules as protocol
from penstock.engine.checkpoint.metadata import FILE, Metadata
from penstock.engine.checkpoint.rules import Ending, Start
from penstock.engine.state.snapshot_file import FileRef, SlotSnapshot

numbers = st.integers(0, 12)
files = st.builds(lambda n, name: f"chk-{n}/{name}", numbers, st.sampled_from(["slot-0-a", "slot-1-b", "slot-0-c"]))
metadata_names = numbers.map(lambda n: f"chk-{n}/{FILE}")
strangers = st.sampled_from(
    [
        "owner/00000007",
        "owner/00000007.began",
        "notes",
        FILE,
        "chk-x/f",
        "chk-/f",
        f"xchk-3/{FILE}",
        f"chk-2/deeper/{FILE}",
        "chk-3",
        "chk-4/_metadata.1.draft",
    ]
)
listings = st.lists(files | metadata_names | strangers, unique=True)


def metadata(number, names, inline=()):
    refs = [FileRef(name, 1, 0, "") for name in names] + [FileRef(name, 1, 0, "", b"x") for name in inline]
    return Metadata(number, 0, "job", "job", {}, [SlotSnapshot(refs)])


metadatas = st.builds(metadata, numbers, st.lists(files, max_size=4), st.lists(files, max_size=2))


class TestComplete:
    @given(listings)
    def test_those_with_metadata_oldest_first(self, names):
        found = protocol.complete(names)
        assert found == sorted(n for n in range(13) if f"chk-{n}/{FILE}" in names)

    def test_by_number_and_not_by_name(self):
        assert protocol.complete([f"chk-{n}/{FILE}" for n in (10, 9, 100)]) == [9, 10, 100]

    def test_a_draft_is_not_metadata(self):
        assert protocol.complete([f"chk-1/{FILE}.0a1b.draft", "chk-2/slot-0", f"chk-3/below/{FILE}"]) == []

    @given(st.integers(0, 10**9))
    def test_a_folder_and_its_number(self, number):
        assert protocol.number_of(f"{protocol.folder_of(number)}/x") == number


class TestNextNumber:
    @given(listings)
    @example([])
    def test_no_checkpoint_has_had_it(self, names):
        number = protocol.next_number(names)
        assert number >= 1 and not any(name.startswith(f"chk-{n}/") for name in names for n in range(number, 20))

    @given(listings)
    def test_it_leaves_no_gap(self, names):
        number = protocol.next_number(names)
        assert number == 1 or any(name.startswith(f"chk-{number - 1}/") for name in names)

    def test_one_that_was_never_complete_counts(self):
        assert protocol.next_number([f"chk-1/{FILE}", "chk-7/slot-0-x"]) == 8


class TestSuperseded:
    @given(st.lists(metadatas, max_size=4), st.lists(metadatas, max_size=4))
    def test_what_only_dropped_ones_need(self, dropped, kept):
        gone = protocol.exclusive_files(dropped, kept)
        needed = set().union(*(m.files() for m in kept))
        assert not gone & needed
        assert gone | needed >= set().union(*(m.files() for m in dropped))
        assert all(any(name in m.files() for m in dropped) for name in gone)

    @given(st.lists(metadatas, min_size=1, max_size=4))
    def test_one_that_is_dropped_and_kept_stays(self, some):
        assert protocol.exclusive_files(some, some) == set()


class TestLeftovers:
    kept_ones = st.dictionaries(numbers, st.sets(files, max_size=4), max_size=3)

    @given(listings, kept_ones)
    def test_nothing_that_a_kept_checkpoint_needs_goes(self, names, kept):
        gone = set(protocol.leftovers(names, kept))
        for number, needed in kept.items():
            assert f"chk-{number}/{FILE}" not in gone and not needed & gone

    @given(listings, kept_ones)
    def test_everything_else_of_checkpoints_goes_and_nothing_beside_them(self, names, kept):
        gone = set(protocol.leftovers(names, kept))
        needed = set().union(*kept.values()) | {f"chk-{number}/{FILE}" for number in kept}
        for name in names:
            of_a_checkpoint = name.split("/")[0] in {f"chk-{n}" for n in range(13)} and "/" in name
            assert (name in gone) is (of_a_checkpoint and name not in needed)

    @given(listings, kept_ones, st.dictionaries(numbers, st.sets(files, max_size=3)))
    def test_metadata_first_so_that_no_checkpoint_is_ever_half_there(self, names, kept, needs):
        """Stop deleting anywhere: what has metadata still has its files, also those in folders of older ones."""
        order = protocol.leftovers(names, kept)
        assert len(order) == len(set(order))
        for stop in range(len(order) + 1):
            left = set(names) - set(order[:stop])
            for number in set(protocol.complete(left)) - set(kept):
                assert needs.get(number, set()) & set(names) <= left

    def test_a_newer_checkpoint_goes_before_the_older_file_that_it_needs(self):
        names = ["chk-1/slot-0-a", "chk-2/slot-0-b", f"chk-2/{FILE}", f"chk-1/{FILE}"]
        order = protocol.leftovers(names, {})
        assert order == [f"chk-1/{FILE}", f"chk-2/{FILE}", "chk-1/slot-0-a", "chk-2/slot-0-b"]


class TestOwners:
    """Of all complete checkpoints, those count that the last owner has published or taken over."""

    owners = st.integers(0, 3)
    published = st.lists(st.builds(lambda n, o: replace(metadata(n, []), owner=o), numbers, owners), max_size=6)
    pairs = st.frozensets(st.tuples(owners, numbers), max_size=6)

    @given(published)
    def test_without_owners_all_of_them_count(self, some):
        assert protocol.line(some, None) == some

    @given(published, owners, pairs)
    def test_what_a_displaced_driver_published_at_the_last_moment_does_not_count(self, some, owner, inherited):
        counting = protocol.line(some, Start(owner, inherited))
        for one in some:
            assert (one in counting) is (one.owner == owner or (one.owner, one.number) in inherited)

    @given(published, owners, pairs, pairs)
    def test_nor_what_an_owner_gave_up_at_its_end(self, some, owner, inherited, kept):
        counting = protocol.line(some, Start(owner, inherited, Ending(False, kept)))
        assert counting == [m for m in protocol.line(some, Start(owner, inherited)) if (m.owner, m.number) in kept]
        assert protocol.line(some, Start(owner, inherited, Ending(False))) == protocol.line(
            some, Start(owner, inherited)
        )

    def test_finished_is_what_the_last_owner_says(self):
        assert not protocol.is_finished(None) and not protocol.is_finished(Start(3))
        assert not protocol.is_finished(Start(3, ending=Ending(False)))
        assert protocol.is_finished(Start(3, ending=Ending(True)))


class TestMissing:
    def at(self, owner, number):
        made = metadata(number, ())
        made.owner = owner
        return made

    def test_nothing_was_published(self):
        assert protocol.missing([], None) is None
        assert protocol.missing([], Start(3)) is None

    def test_the_newest_is_there(self):
        assert protocol.missing([self.at(3, 7)], Start(3, newest=7)) is None

    def test_one_that_was_published_and_not_noted_any_more(self):
        assert protocol.missing([self.at(3, 8)], Start(3, newest=7)) is None
        assert protocol.missing([self.at(3, 8)], Start(3, frozenset({(2, 7)}))) is None

    def test_the_newest_is_gone(self):
        assert protocol.missing([self.at(3, 6)], Start(3, newest=7)) == (3, 7)
        assert protocol.missing([self.at(2, 5)], Start(3, frozenset({(2, 5)}), newest=7)) == (3, 7)

    def test_all_that_it_started_from_is_gone(self):
        start = Start(3, frozenset({(2, 5), (2, 6)}))
        assert protocol.missing([self.at(2, 5)], start) == (2, 6)
        assert protocol.missing([], start) == (2, 6)

    def test_what_goes_on_purpose_is_not_missing(self):
        ended = Ending(False, frozenset())
        assert protocol.missing([], Start(3, ending=ended, newest=7)) is None
        kept = Ending(False, frozenset({(3, 7)}))
        assert protocol.missing([], Start(3, ending=kept, newest=7)) == (3, 7)
        assert protocol.missing([], Start(3, ending=Ending(False), newest=7)) == (3, 7)
