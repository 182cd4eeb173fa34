"""What penstock.base.storage promises, on every kind of storage that can be had here."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.base.storage import Storage, split_url
from penstock.errors import AlreadyThere, StorageError

MAKERS = 8
ROUNDS = 15
NAMES = ["a", "b/c", "b/d", "b/e/f", "g"]


# --- files ---
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_files_come_and_go_as_in_a_dict(place, data):
    """After each change every reader, also one who has looked before, finds what is there and nothing else."""
    storage, other, model = Storage(place), Storage(place), {}
    for name in storage.names():
        storage.delete(name)
    for _ in range(data.draw(st.integers(1, 8))):
        name, content = data.draw(st.sampled_from(NAMES)), data.draw(st.binary(max_size=30))
        change(data.draw(st.sampled_from(["write", "create", "delete", "rename"])), storage, model, name, content)
        assert other.sizes() == {name: len(held) for name, held in model.items()}
        assert other.exists(name) == (name in model)
        if name in model:
            assert other.read(name) == model[name]


def change(how, storage, model, name, content):
    match how:
        case "write":
            assert storage.write(name, [content[:3], content[3:]]) == len(content)
            model[name] = content
        case "create" if name in model and model[name] != content:
            with pytest.raises(AlreadyThere):
                storage.create(name, content)
        case "create" if name not in model:
            storage.create(name, content)
            model[name] = content
        case "rename" if name in model and name != "g":
            storage.rename(name, "g")
            model["g"] = model.pop(name)
        case "delete":
            storage.delete(name)
            model.pop(name, None)


def test_a_range_of_a_file(place):
    storage, data = Storage(place), bytes(range(256)) * 400
    storage.write("f", [data])
    assert storage.size("f") == len(data)
    assert storage.read("f", 1000, 1010) == data[1000:1010]
    assert storage.read("f", len(data) - 5, None) == data[-5:]
    with storage.open("f") as file:
        for at in (70_000, 3, len(data) - 4):
            file.seek(at)
            assert file.read(4) == data[at : at + 4]


def test_two_readers_of_a_file_do_not_disturb_each_other(place):
    storage = Storage(place)
    storage.write("f", [b"0123456789"])
    with storage.open("f") as first, storage.open("f") as second:
        assert (first.read(3), second.read(3), first.read(3)) == (b"012", b"012", b"345")


def test_what_is_not_there(place):
    storage = Storage(place)
    for read in (storage.read, storage.open):
        with pytest.raises(FileNotFoundError):
            read("none")
    assert (storage.size("none"), storage.exists("none"), storage.names()) == (None, False, [])
    storage.delete("none")
    storage.delete_empty_folder("none")


@pytest.mark.parametrize(
    "name", ["with blank", "per%20cent", "ha#sh", "ümlaut", "a:b", "plus+", "st*r", "[x]", "a&b=c"]
)
def test_names_are_taken_as_they_are(place, name):
    storage = Storage(f"{place}/{name}")
    if ":" in name and "hdfs://" in place:
        with pytest.raises(StorageError, match="Invalid"):  # HDFS knows no such names
            storage.create(name, b"1")
        return
    storage.create(name, b"1")
    storage.write("other", [b"22"])
    storage.rename("other", f"{name}2")
    assert storage.sizes() == {name: 1, f"{name}2": 2}
    folder, last = split_url(storage.url(name))
    assert Storage(folder).read(last) == b"1" and storage.name(storage.url(name)) == name


def test_a_file_written_piece_by_piece(place):
    storage = Storage(place)
    with storage.open_new("a/f") as file:
        for number in range(3):
            file.write(bytes([number]) * 3_000_000)
    storage.sync_folder("a")
    assert storage.size("a/f") == 9_000_000
    assert storage.read("a/f", 2_999_999, 3_000_001) == b"\x00\x01"


# --- creating ---
@pytest.fixture
def hasty():
    """Threads switch as often as possible, so that the threads of one process meet."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_of_many_threads_one_makes_the_file(place, hasty):
    storage, ready = Storage(place), threading.Barrier(MAKERS)

    def make(maker, name):
        ready.wait()
        return maker if made(storage, name, content(maker)) else None

    with ThreadPoolExecutor(MAKERS) as threads:
        for number in range(ROUNDS):
            outcomes = threads.map(make, range(MAKERS), [f"d/{number}"] * MAKERS)
            (winner,) = [maker for maker in outcomes if maker is not None]
            assert storage.read(f"d/{number}") == content(winner)
    assert storage.names() == sorted(f"d/{number}" for number in range(ROUNDS)), "drafts are left behind"


def test_of_many_processes_one_makes_the_file(shared_place):
    """Each process goes through the same names, so that they meet again and again."""
    makers, context = 3, get_context("spawn")
    ready = context.Barrier(makers)
    with context.Pool(makers, initializer=take_barrier, initargs=[ready]) as pool:
        won = pool.starmap(make_all, [(shared_place, maker) for maker in range(makers)], chunksize=1)
    storage = Storage(shared_place)
    assert sorted(name for names in won for name in names) == sorted(map(str, range(ROUNDS)))
    assert {name: storage.read(name) for name in storage.names()} == {
        name: content(maker) for maker, names in enumerate(won) for name in names
    }


def take_barrier(barrier):
    global ready_together
    ready_together = barrier


def make_all(place, maker):
    storage = Storage(place)
    storage.exists("warmed up")
    won = []
    for number in range(ROUNDS):
        ready_together.wait()
        if made(storage, str(number), content(maker)):
            won.append(str(number))
    return won


def content(maker):
    return bytes([maker]) * 2000


def made(storage, name, data):
    try:
        storage.create(name, data)
    except AlreadyThere as refused:
        assert f"/{name}' exists already" in str(refused)
        return False
    return True


def test_the_same_bytes_are_taken_for_an_earlier_try(place):
    """A call whose answer was lost is tried again, and finds its own file: that is no conflict with another creator.

    Where files are renamed the draft tells; where they are put, the bytes do.
    """
    storage = Storage(place)
    storage._place("f", b"mine")
    if storage._puts_whole:
        storage._place("f", b"mine")
    with pytest.raises(AlreadyThere):
        storage._place("f", b"other")
    assert storage.read("f") == b"mine"


def test_a_second_maker_is_refused_without_a_look(place):
    storage = Storage(place)
    assert storage.is_exclusive()
    assert storage.names() == []


def test_an_empty_file_is_made_once(place):
    storage = Storage(place)
    storage._place("f", b"full")
    with pytest.raises(AlreadyThere):
        storage._place("f", b"")
    assert storage.read("f") == b"full"
