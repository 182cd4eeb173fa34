"""What tables in RocksDB do beyond the contract of all tables: files, memory, settings, other threads."""

import gc
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from contextlib import closing

import pytest

import penstock.engine.state.rocksdb as rocksdb
from penstock.base import pickling
from penstock.datastream.state_backend import PredefinedOptions
from penstock.engine.state.key_bytes import key_bytes
from penstock.engine.state.live_entries import HEAVY, footprint
from penstock.engine.state.rocksdb import RocksOptions, RocksTables
from penstock.engine.state.tables import Layout
from penstock.errors import ConfigurationError, NotSerializable, UnsupportedKey

KILOBYTE, MEGABYTE = 1 << 10, 1 << 20


@pytest.fixture
def tables(tmp_path):
    """A slot whose objects have almost no room."""
    with closing(RocksTables(RocksOptions((str(tmp_path),), memory_bytes=6 * KILOBYTE), "job 7, slot 1")) as made:
        yield made


@pytest.fixture
def table(tables):
    return tables.table("operator", "state", Layout.KEY)


def spilled(tables):
    return [name for name in os.listdir(tables.directory) if name.endswith(".changes")]


def replayed(pages):
    state = {}
    for page in pages:
        addresses, values, gone = pickling.loads(page)
        state.update(zip(addresses, values, strict=True))
        for address in gone:
            state.pop(address, None)
    return state


# --- directories ---
def test_the_directory_goes_with_the_slot(tmp_path):
    tables = RocksTables(RocksOptions((str(tmp_path / "made"),)), "job 7, slot 1")
    tables.table("o", "s", Layout.KEY).put("k", 1)
    assert os.path.dirname(tables.directory) == str(tmp_path / "made")
    assert f"penstock-rocksdb-{os.getpid()}-job-7-slot-1-" in tables.directory
    tables.close()
    tables.close()
    assert os.listdir(tmp_path / "made") == []


def test_the_directory_goes_with_a_slot_that_is_forgotten(tmp_path):
    table = RocksTables(RocksOptions((str(tmp_path),))).table("o", "s", Layout.KEY)
    table.put("k", 1)
    table.end_epoch(tracking=True)
    assert len(os.listdir(tmp_path)) == 1
    del table
    gc.collect()
    assert os.listdir(tmp_path) == []


def test_without_directories_the_temporary_one_is_used():
    with closing(RocksTables()) as tables:
        assert os.path.dirname(tables.directory) == tempfile.gettempdir()
    assert not os.path.exists(tables.directory)


def test_slots_are_spread_over_the_directories(tmp_path):
    options = RocksOptions(tuple(str(tmp_path / name) for name in "abc"))
    for slot in range(12):
        RocksTables(options, f"slot {slot}").close()
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"]


def test_what_a_dead_process_left_is_removed_and_what_a_live_one_uses_is_not(tmp_path):
    script = (
        "import os, sys\n"
        "from penstock.engine.state.rocksdb import RocksOptions, RocksTables\n"
        "tables = RocksTables(RocksOptions((sys.argv[1],)), 'victim')\n"
        "print(tables.directory, flush=True)\n"
        "sys.stdin.read()\n"
        "os._exit(1)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    left = process.stdout.readline().strip()
    mine = RocksTables(RocksOptions((str(tmp_path),)), "mine")
    assert os.path.isdir(left)
    process.communicate("")
    assert os.path.isdir(left)
    RocksTables(RocksOptions((str(tmp_path),)), "next").close()
    assert os.listdir(tmp_path) == [os.path.basename(mine.directory)]
    mine.close()


def test_a_process_that_cannot_be_seen_is_known_by_its_lock(tmp_path):
    """Its directory bears the number of a process that does not run here, as one of another container would."""
    other = subprocess.Popen(["true"])
    other.wait()
    with closing(RocksTables(RocksOptions((str(tmp_path),)), "mine")) as mine:
        unseen = f"-{other.pid}-".join(mine.directory.rsplit(f"-{os.getpid()}-", 1))
        os.rename(mine.directory, unseen)
        RocksTables(RocksOptions((str(tmp_path),)), "next").close()
        os.rename(unseen, mine.directory)
    RocksTables(RocksOptions((str(tmp_path),)), "next").close()
    assert os.listdir(tmp_path) == []


# --- settings ---
def test_a_factory_has_the_last_word(tmp_path, monkeypatch):
    (tmp_path / "rocks_factory.py").write_text(
        "seen = []\nclass Mine:\n    def configure(self, options):\n        seen.append(type(options).__name__)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for path in ("rocks_factory:Mine", "rocks_factory.Mine"):
        RocksTables(RocksOptions(options_factory=path)).close()
    import rocks_factory

    assert rocks_factory.seen == ["Options", "Options"]


@pytest.mark.parametrize("path", ["nowhere.Mine", "tempfile.Nothing", "Mine", "pickle:loads"])
def test_a_factory_that_cannot_be_made(path, tmp_path):
    with pytest.raises(ConfigurationError, match=rf"factory '{path}' cannot be made.*configure"):
        RocksTables(RocksOptions((str(tmp_path),), options_factory=path))
    assert os.listdir(tmp_path) == []


def test_a_database_that_cannot_be_opened_leaves_nothing(tmp_path, monkeypatch):
    factories, place = tmp_path / "factories", tmp_path / "place"
    factories.mkdir()
    place.mkdir()
    (factories / "unopenable_factory.py").write_text(
        "class Mine:\n    def configure(self, options):\n        options.create_if_missing(False)\n"
    )
    monkeypatch.syspath_prepend(factories)
    with pytest.raises(ConfigurationError, match=f"RocksDB cannot be opened in {place}.*does not exist"):
        RocksTables(RocksOptions((str(place),), options_factory="unopenable_factory:Mine"))
    assert os.listdir(place) == []


@pytest.mark.parametrize("predefined", [option.name for option in PredefinedOptions])
def test_every_kind_of_disk(predefined):
    options = pickle.loads(pickle.dumps(RocksOptions(predefined=predefined)))
    with closing(RocksTables(options)) as tables:
        table = tables.table("o", "s", Layout.KEY)
        table.put("k", 1)
        table.end_epoch(tracking=False)
        assert dict(table.entries.items()) == {"k": 1}


def test_an_unknown_kind_of_disk():
    with pytest.raises(ConfigurationError, match="'FLOPPY' are unknown: choose one of DEFAULT, SPINNING"):
        RocksOptions(predefined="FLOPPY")


# --- memory ---
def test_only_so_many_objects_are_alive(tmp_path):
    """1.8 MB have room for 18 large values, or for some 9,000 small ones at 200 bytes each."""
    with closing(RocksTables(RocksOptions((str(tmp_path),), memory_bytes=3 * MEGABYTE))) as tables:
        small, large = tables.table("o", "small", Layout.KEY), tables.table("o", "large", Layout.KEY)
        most = {"small": 0, "large": 0}
        for number in range(40_000):
            small.put(f"key-{number}", number)
            if number % 400 == 0:
                large.put(number, "x" * 100_000)
            if number % 1000 == 0:
                for table in (small, large):
                    table.end_epoch(tracking=True)
                    most[table.name] = max(most[table.name], len(table.entries._young) + len(table.entries._old))
        assert len(small.entries) == 40_000 and len(large.entries) == 100
        assert 1000 < most["small"] < 9500
        assert 2 <= most["large"] <= 18


def test_reading_makes_alive_only_what_there_is_room_for(table):
    for number in range(5000):
        table.put(number, [number])
    table.end_epoch(tracking=False)
    for number in range(5000):
        assert table.entries.get(number) == [number]
    assert len(table.entries._young) + len(table.entries._old) < 100


def test_an_object_in_use_is_the_same_object(table):
    held = [1]
    table.put("k", held)
    table.end_epoch(tracking=True)
    assert table.entries.get("k") is held


def test_large_entries_count_by_themselves(table):
    for number in range(20):
        table.put(number, "x" * HEAVY)
        table.end_epoch(tracking=False)
    assert len(table.entries._young) <= 1
    assert [table.entries[number] for number in range(20)] == ["x" * HEAVY] * 20


def test_a_footprint_counts_parts_once():
    part = "x" * 1000
    assert 1000 < footprint([part, part]) < 1500
    assert footprint([str(number) * 100 for number in range(10)]) > 1000
    assert footprint(list(range(10_000))) < 200_000


# --- changes ---
def test_changes_are_kept_in_files_until_confirmed(tables, table):
    table.put("a", 1)
    table.mark(1)
    table.put("b", 2)
    table.mark(2)
    assert len(spilled(tables)) == 2
    assert replayed(table.changes()) == {"a": 1, "b": 2}
    table.confirm(1)
    assert len(spilled(tables)) == 1
    assert replayed(table.changes()) == {"b": 2}
    table.confirm(2)
    assert spilled(tables) == [] and list(table.changes()) == []


def test_a_quiet_checkpoint_has_no_file(tables, table):
    table.mark(1)
    table.end_epoch(tracking=True)
    assert spilled(tables) == []


def test_without_tracking_nothing_is_kept(tables, table):
    for number in range(50):
        table.put(number, number)
        table.entries.get(-number)
    table.end_epoch(tracking=False)
    assert spilled(tables) == []


def test_changes_that_outgrow_the_state_give_way_to_it(tables, table, monkeypatch):
    monkeypatch.setattr(rocksdb, "_SPILL_LEAST", 20_000)
    table.put("removed early", 0)
    table.mark(1)
    early = list(table.changes())
    table.confirm(1)
    table.put("kept", 1)
    table.put("removed late", 0)
    table.mark(2)
    for epoch in range(50):
        for number in range(50):
            table.put(number, epoch)
        if epoch == 3:
            table.remove("removed early")
        if epoch == 40:
            table.remove("removed late")
        table.end_epoch(tracking=True)
    assert sum(os.path.getsize(os.path.join(tables.directory, name)) for name in spilled(tables)) < 25_000
    table.mark(3)
    expected = {"kept": 1} | dict.fromkeys(range(50), 49)
    assert replayed([*early, *table.changes()]) == expected
    base = [*early, *table.changes()]
    table.confirm(3)
    table.put("after", 2)
    table.mark(4)
    assert replayed(table.changes()) == {"after": 2}
    assert replayed([*base, *table.changes()]) == expected | {"after": 2}


def test_checkpoints_are_read_elsewhere_while_the_slot_goes_on(table):
    count = 3000
    for number in range(count):
        table.put(number, [0])
    table.mark(1)
    everything, changes, started = table.everything(), table.changes(), threading.Event()
    read = []

    def consume():
        started.set()
        read.append(replayed(everything))
        read.append(replayed(changes))

    thread = threading.Thread(target=consume)
    thread.start()
    started.wait()
    for epoch in range(1, 4):
        for number in range(count - epoch):
            table.entries.get(number).append(epoch)
            table.changed.add(number)
        table.remove(count - epoch)
        table.end_epoch(tracking=True)
    table.confirm(1)
    thread.join()
    assert read == [{number: [0] for number in range(count)}] * 2


def test_reading_on_after_the_slot_is_closed_does_no_harm(tables, table):
    for number in range(3000):
        table.put(number, number)
    table.mark(1)
    everything, changes = table.everything(), table.changes()
    tables.close()
    assert replayed(everything) == replayed(changes) == {number: number for number in range(3000)}


def test_pages_are_neither_long_nor_large(table):
    for number in range(20):
        table.put(number, "x" * MEGABYTE)
    for number in range(5000):
        table.put(str(number), number)
    table.mark(1)
    for pages in (list(table.changes()), list(table.everything())):
        assert max(map(len, pages)) < 8 * MEGABYTE
        assert max(len(pickling.loads(page)[0]) for page in pages) <= 4096
        assert len(replayed(pages)) == 5020


# --- the rest ---
def test_tables_of_a_slot_keep_apart(tables):
    made = [tables.table("o", str(number), Layout.KEY) for number in range(300)]
    for number, table in enumerate(made):
        table.put("k", number)
        table.end_epoch(tracking=False)
    made[255].clear()
    assert [table.entries.get("k") for table in made] == [*range(255), None, *range(256, 300)]
    assert [len(table.entries) for table in made[254:257]] == [1, 0, 1]


def test_clearing_counts_as_removal_of_all(table):
    table.put("a", 1)
    table.mark(1)
    base = list(table.changes())
    table.confirm(1)
    table.put("b", 2)
    table.mark(2)
    table.put("c", 3)
    table.clear()
    assert list(table.entries) == [] and not table.entries
    table.put("d", 4)
    table.mark(3)
    assert replayed([*base, *table.changes()]) == {"d": 4}


def test_clearing_for_every_key_writes_nothing(table):
    """BATCH mode clears a table after every key."""
    for number in range(100):
        table.put(number, 1)
        assert table.entries.pop(number) == 1
        table.put(number, 2)
        table.clear()
        assert table.entries.get(number) is None
    assert not table.entries.written


def test_sweeping_goes_round_and_brings_nothing_to_life(table):
    for number in range(100):
        table.put(number, number)
    table.end_epoch(tracking=True)
    table.entries.age()
    table.entries.age()
    table.prune = lambda value: None if value % 2 else value if value % 4 else value + 1000
    table.sweep(60)
    table.sweep(0)
    assert len(table.changed) == 30 + 15
    assert len(table.entries._young) == 15
    table.sweep(60)
    assert set(table.entries) == set(range(0, 100, 2))
    assert all(value % 4 or value >= 1000 for value in table.entries.values())


def test_sweeping_sees_what_changed_in_this_epoch(table):
    table.put("a", 1)
    table.put("b", 1)
    table.put("c", 1)
    table.end_epoch(tracking=True)
    table.put("a", 5)
    table.remove("b")
    table.prune = lambda value: value if value > 1 else None
    table.sweep(10)
    assert dict(table.entries.items()) == {"a": 5}


def test_values_may_be_none(table):
    table.put("k", None)
    table.end_epoch(tracking=True)
    table.entries.age()
    table.entries.age()
    assert "k" in table.entries
    assert table.entries.get("k", "default") is None
    assert list(table.entries.items()) == [("k", None)]


def test_the_first_of_equal_addresses_stays(table):
    table.put(1, "x")
    table.end_epoch(tracking=True)
    table.entries.age()
    table.entries.age()
    assert table.entries.get(True) == "x"
    assert [repr(address) for address in table.entries] == ["1"]


def test_what_cannot_be_pickled_is_named(table):
    table.put("k", threading.Lock())
    with pytest.raises(NotSerializable, match=r"state 'state' cannot keep <unlocked.*type lock.*cannot pickle"):
        table.end_epoch(tracking=True)


def test_classes_defined_inside_functions_do(table):
    class Visit:
        def __init__(self, page):
            self.page = page

        def __eq__(self, other):
            return self.page == other.page

        def __hash__(self):
            return hash(self.page)

    table.put(("k", Visit("home")), Visit("a"))
    table.end_epoch(tracking=True)
    table.entries.age()
    table.entries.age()
    assert table.entries.get(("k", Visit("home"))) == Visit("a")
    assert table.entries.get(("k", Visit("shop"))) is None


def test_what_has_no_bytes_is_refused():
    with pytest.raises(UnsupportedKey, match=r"cannot be the address of state in RocksDB"):
        key_bytes(("k", threading.Lock()))


def test_damage_is_not_taken_for_the_end(tmp_path):
    with closing(RocksTables(RocksOptions((str(tmp_path),), memory_bytes=3 * MEGABYTE))) as tables:
        table = tables.table("o", "s", Layout.KEY)
        for number in range(20_000):
            table.put(number, os.urandom(50))
        table.flush()
        tables._database.flush()
        folder = os.path.join(tables.directory, "db")
        for name in os.listdir(folder):
            if name.endswith(".sst"):
                with open(os.path.join(folder, name), "r+b") as file:
                    file.seek(500_000)
                    file.write(bytes(50_000))
        with pytest.raises(Exception, match="Corruption"):
            list(table.everything())
