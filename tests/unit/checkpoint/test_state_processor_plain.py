"""The state processor without Spark: reading snapshots of real jobs, writing new ones, changed copies."""

from __future__ import annotations

import dataclasses
import datetime
import random
import subprocess
import sys
from decimal import Decimal
from enum import Enum
from functools import reduce
from itertools import chain
from pathlib import Path
from uuid import UUID

import pytest

import penstock.state
from penstock.common import Configuration, Row, Time, Types
from penstock.common.time import Instant
from penstock.datastream import (
    BroadcastProcessFunction,
    CheckpointedFunction,
    KeyedProcessFunction,
    ListStateDescriptor,
    MapFunction,
    MapStateDescriptor,
    ProcessWindowFunction,
    ReducingStateDescriptor,
    StateTtlConfig,
    StreamExecutionEnvironment,
    TimeWindow,
    ValueStateDescriptor,
)
from penstock.datastream.window import CountWindow, GlobalWindow, TumblingEventTimeWindows
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.checkpoint.store import FolderStore, read_snapshot, write_savepoint
from penstock.engine.state.key_groups import key_group, subtask_for_group
from penstock.engine.state.snapshot_file import Kind, Name, Shape, SlotSnapshot, State, write_file
from penstock.engine.state.state_schema import schema_of
from penstock.engine.state.tables import Table, page
from penstock.errors import (
    CorruptSnapshot,
    InvalidParallelism,
    NoSuchSnapshot,
    ProgramError,
    SnapshotError,
    StorageError,
    TypeMismatch,
    UnsupportedKey,
)
from penstock.spark.state_processor.state_columns import Nothing, cell_of_schema, column
from penstock.state import SavepointReader, SavepointWriter
from penstock.testing import ManualClock, at, in_process, scripted, watermark

COUNT = ValueStateDescriptor("count", Types.LONG())
WORDS = MapStateDescriptor("words", Types.STRING(), Types.LONG())
SEEN = ListStateDescriptor("seen", Types.STRING())
LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.LONG())
ITEMS = ListStateDescriptor("items", Types.LONG())
NOW = 1_000_000


def expiring(descriptor, millis=10_000):
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(millis)).build())
    return descriptor


class Remember(KeyedProcessFunction):
    """Counts per key, and remembers in a map and in a list; a negative number makes it forget the key."""

    def open(self, context):
        self.count = context.get_state(COUNT)
        self.words = context.get_map_state(WORDS)
        self.seen = context.get_list_state(SEEN)

    def process_element(self, value, ctx):
        key, word = value
        if word == "forget":
            for state in (self.count, self.words, self.seen):
                state.clear()
        else:
            self.count.update((self.count.value() or 0) + 1)
            self.words.put(word, (self.words.get(word) or 0) + 1)
            self.seen.add(word)
            ctx.timer_service().register_event_time_timer(1000 + len(word))
        yield key, self.count.value(), sorted(self.words.items()), list(self.seen.get())


def remembering(stream):
    return stream.key_by(lambda v: v[0]).process(Remember()).uid("remember").name("Remember")


def environment(parallelism=1, start=None, **options):
    settings = {"execution.state-recovery.path": start, **options}
    configuration = Configuration()
    for name, value in settings.items():
        if value is not None:
            configuration.set_string(name, str(value))
    env = StreamExecutionEnvironment().set_parallelism(parallelism).set_buffer_timeout(5)
    env.configure(configuration)
    return env


def savepoint(directory, build, script, *, parallelism=1, start=None, results=None, clock=None, **options):
    """Run a program over a script, stop behind a savepoint, and return (results, path)."""
    with in_process(clock=clock):
        env = environment(parallelism, start, **options)
        found = build(scripted(env, *script, stay=True).uid("script")).execute_and_collect()
        steps = [step for step in script if not isinstance(step, watermark)]
        taken = [next(found) for _ in range(len(steps) if results is None else results)]
        path = found._job.trigger_savepoint(str(directory), False, False)
        found.close()
    return taken, path


def run_from(start, build, script, *, parallelism=1, clock=None):
    """Start a program with a source of its own from a savepoint and return everything it emits."""
    old_source = "script" in read_snapshot(start).shapes
    options = {"execution.state-recovery.ignore-unclaimed-state": "true" if old_source else None}
    with in_process(clock=clock):
        env = environment(parallelism, start, **options)
        with build(scripted(env, *script).uid("new script")).execute_and_collect() as found:
            return list(found)


def read(path, uid, name, **which):
    return sorted(SavepointReader.read(path).read_python(uid, name, **which), key=repr)


VISITS = [("ann", "home"), ("bo", "home"), ("ann", "shop"), ("cy", "shop"), ("ann", "shop")]


@pytest.fixture
def remembered(tmp_path):
    return savepoint(tmp_path / "saved", remembering, VISITS, parallelism=2)[1]


# --- the package ---
def test_names_are_resolved_when_used_and_pyspark_is_not_needed():
    program = """
import sys
import penstock.state
assert not any(name.startswith("penstock.spark") for name in sys.modules)
penstock.state.SavepointReader, penstock.state.SavepointWriter
assert "pyspark" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert {"SavepointReader", "SavepointWriter"} <= set(dir(penstock.state))
    with pytest.raises(AttributeError, match="SavepointEditor"):
        penstock.state.SavepointEditor


# --- what there is ---
def test_operators_and_their_states_are_described(remembered):
    script, remember, collect = SavepointReader.read(remembered).operators()
    assert (script.uid, script.states) == ("script", []) and collect.states == []
    assert (remember.uid, remember.name, remember.parallelism, remember.max_parallelism) == (
        "remember",
        "Remember",
        2,
        128,
    )
    assert {(s.name, s.kind, s.window, s.type, s.ttl) for s in remember.states} == {
        ("count", "keyed", False, "value<LONG>", False),
        ("words", "keyed", False, "map<STRING, LONG>", False),
        ("seen", "keyed", False, "list<STRING>", False),
        ("_event_timers", "timers", False, "timer", False),
        ("_processing_timers", "timers", False, "timer", False),
    }


def test_describe_is_a_table(remembered):
    title, headings, *rows = SavepointReader(remembered).describe().splitlines()
    assert title == "savepoint 1 of job 'Penstock job', 2 slots"
    assert headings.split() == ["uid", "name", "parallelism", "state", "kind", "of", "type"]
    assert rows[0].split() == ["script", "Scripted", "Source", "1", "of", "128", "-", "-", "-", "-"]
    assert rows[1].split() == ["remember", "Remember", "2", "of", "128", "count", "keyed", "key", "value<LONG>"]
    assert len({line.index("keyed") for line in rows if "keyed" in line}) == 1


def test_describing_reads_the_metadata_alone(remembered):
    folder = Path(remembered.removeprefix("file://"))
    assert [path.name for path in folder.iterdir()] == ["_metadata"]
    reader = SavepointReader(str(folder / "_metadata"))
    (folder / "_metadata").unlink()
    assert "remember" in reader.describe()


def test_there_must_be_a_snapshot(tmp_path):
    with pytest.raises(NoSuchSnapshot, match="no checkpoint or savepoint"):
        SavepointReader.read(str(tmp_path))


def test_unknown_operators_and_states_are_refused_with_what_there_is(remembered):
    reader = SavepointReader.read(remembered)
    with pytest.raises(SnapshotError, match=r"no operator with the uid 'x'. Uids are: 'script', 'remember'"):
        reader.read_python("x", "count")
    with pytest.raises(SnapshotError, match=r"'remember' has no state 'x'. Its states are: 'count' \(keyed\)"):
        reader.read_python("remember", "x")
    with pytest.raises(SnapshotError, match=r"no state 'count' of windows"):
        reader.read_python("remember", "count", window=True)
    with pytest.raises(SnapshotError, match=r"no broadcast 'count'"):
        reader.read_python("remember", "count", kind="broadcast")


# --- what it holds ---
def test_keyed_state_and_timers_are_read(remembered):
    assert read(remembered, "remember", "count") == [("ann", None, 3), ("bo", None, 1), ("cy", None, 1)]
    assert read(remembered, "remember", "words")[0] == ("ann", None, {"home": 1, "shop": 2})
    assert read(remembered, "remember", "seen")[0] == ("ann", None, ["home", "shop", "shop"])
    assert read(remembered, "remember", "_event_timers") == [
        ("ann", None, 1004),
        ("bo", None, 1004),
        ("cy", None, 1004),
    ]


class Total(ProcessWindowFunction):
    def process(self, key, context, elements):
        state = context.window_state().get_state(COUNT)
        state.update((state.value() or 0) + len(list(elements)))
        total = context.global_state().get_state(COUNT)
        total.update((total.value() or 0) + len(list(elements)))
        yield key, total.value()


def windowed(stream):
    windows = stream.key_by(lambda v: v[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    return windows.allowed_lateness(1000).process(Total()).uid("total")


def test_state_of_windows_is_told_from_that_of_keys(tmp_path):
    script = [at(("a", 1), 1), at(("a", 2), 2), at(("b", 1), 12), watermark(15), at(("a", 3), 21)]
    _, path = savepoint(tmp_path / "saved", windowed, script, results=1)
    first, third = TimeWindow(0, 10), TimeWindow(20, 30)
    assert read(path, "total", "count", window=True) == [("a", first, 2)]
    assert read(path, "total", "count") == [("a", None, 2)]
    contents = read(path, "total", "_window_contents")
    assert ("a", third, [("a", 3)]) in contents and ("a", first, [("a", 1), ("a", 2)]) in contents
    timers = read(path, "total", "_event_timers")
    assert ("a", third, 29) in timers and ("a", first, 1009) in timers
    scopes = {(s.name, s.window) for s in SavepointReader(path).operators()[1].states if s.name == "count"}
    assert scopes == {("count", True), ("count", False)}
    assert "key, window" in SavepointReader(path).describe()


class Collecting(MapFunction, CheckpointedFunction):
    """Keeps every element in list state, or in union list state."""

    def __init__(self, union=False):
        self.union = union

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        self.items = store.get_union_list_state(ITEMS) if self.union else store.get_list_state(ITEMS)

    def snapshot_state(self, context):
        pass

    def map(self, value):
        if value is not None:
            self.items.add(value)
        return sorted(self.items.get())


def collecting(stream):
    return stream.map(Collecting()).uid("collecting").set_parallelism(1)


@pytest.mark.parametrize("union", [False, True])
def test_list_and_union_state_are_read_element_by_element(tmp_path, union):
    def build(stream):
        return stream.rebalance().map(Collecting(union)).uid("collecting")

    _, path = savepoint(tmp_path / "saved", build, [1, 2, 3], parallelism=2)
    assert read(path, "collecting", "items") == [(None, None, 1), (None, None, 2), (None, None, 3)]
    (state,) = SavepointReader(path).operators()[1].states
    assert (state.kind, state.type) == ("union" if union else "list", "list<LONG>")


class Limit(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.get_broadcast_state(LIMITS).get(value)

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(LIMITS).put(*value)
        yield "set", value


def limited(stream):
    rules = stream.filter(lambda v: isinstance(v, tuple)).broadcast(LIMITS)
    others = stream.filter(lambda v: isinstance(v, str))
    return others.connect(rules).process(Limit()).uid("limited")


def test_broadcast_state_may_be_missing_where_nobody_asked_for_it(tmp_path):
    def build(stream):
        nothing = stream.filter(lambda _: False).broadcast(LIMITS)
        return stream.rebalance().connect(nothing).process(Limit()).uid("limited")

    _, path = savepoint(tmp_path / "saved", build, ["eur"], parallelism=3)
    copy = SavepointWriter.from_existing(path).write(str(tmp_path / "copy"))
    for one in (path, copy):
        assert sum(len(slot.schemas) for slot in read_snapshot(one).slots) == 1
        assert read(one, "limited", "limits") == []


def test_broadcast_state_is_read_once(tmp_path):
    _, path = savepoint(tmp_path / "saved", limited, [("eur", 5), ("usd", 7)], parallelism=2, results=4)
    assert read(path, "limited", "limits") == [("eur", None, 5), ("usd", None, 7)]


class Fleeting(KeyedProcessFunction):
    def open(self, context):
        self.states = [
            context.get_state(expiring(ValueStateDescriptor("value", Types.LONG()))),
            context.get_list_state(expiring(ListStateDescriptor("list", Types.LONG()))),
            context.get_map_state(expiring(MapStateDescriptor("map", Types.STRING(), Types.LONG()))),
            context.get_reducing_state(expiring(ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG()))),
        ]

    def process_element(self, value, ctx):
        key, number = value
        one, many, named, total = self.states
        if number:
            one.update(number)
            many.add(number)
            named.put(str(number), number)
            total.add(number)
        yield key, one.value(), list(many.get()), dict(named.items()), total.get()


def fleeting(stream):
    return stream.key_by(lambda v: v[0]).process(Fleeting()).uid("fleeting")


def test_values_that_expire_are_shown_without_their_times(tmp_path):
    _, path = savepoint(tmp_path / "s", fleeting, [("k", 1), ("k", 2)], clock=ManualClock(NOW))
    shown = {name: read(path, "fleeting", name)[0][2] for name in ("value", "list", "map", "sum")}
    assert shown == {"value": 2, "list": [1, 2], "map": {"1": 1, "2": 2}, "sum": 3}
    assert all(state.ttl for state in SavepointReader(path).operators()[1].states if state.kind == "keyed")
    assert "list<LONG> with TTL" in SavepointReader(path).describe()


# --- chains of files ---
UNDECLARED = {"layout": "key", **schema_of(ValueStateDescriptor("s"))}


def chain_of(folder, *files):
    """A snapshot of one slot whose files hold these pages, oldest first."""
    name = Name("op", Kind.KEYED, "s")
    states = [[State(name, [page(*part) for part in pages])] for pages in files]
    refs = [write_file(f"{folder.as_uri()}/f{i}", s, compress=i % 2 == 1, inline_below=0) for i, s in enumerate(states)]
    slot = SlotSnapshot(refs, {name: UNDECLARED})
    write_savepoint(Metadata(1, 0, "", "job", {"op": Shape(1, 128)}, [slot]), str(folder))
    return str(folder)


def test_in_a_chain_later_files_and_pages_win_and_what_is_gone_is_gone(tmp_path):
    path = chain_of(
        tmp_path,
        [(["a", "b", "c", "d"], [1, 1, 1, 1])],
        [(["a", "b"], [2, 2]), (["b"], [3], ["c"])],
        [([], [], ["a"]), (["c"], [4])],
        [(["a"], [5]), ([], [], ["a"]), (["e", "e"], [6, 7])],
    )
    assert read(path, "op", "s") == [("b", None, 3), ("c", None, 4), ("d", None, 1), ("e", None, 7)]


@pytest.mark.parametrize("seed", range(20))
def test_reading_a_chain_gives_what_restoring_it_would(tmp_path, seed):
    choose, table = random.Random(seed), Table("s")

    def some_page():
        addresses = choose.choices(range(12), k=choose.randrange(6))
        gone = choose.choices(range(12), k=choose.randrange(3))
        return addresses, [choose.random() for _ in addresses], gone

    full = choose.sample(range(12), 8)
    files = [[(full[:5], [0] * 5), (full[5:], [0] * 3)]]
    files += [[some_page() for _ in range(choose.randrange(4))] for _ in range(choose.randrange(5))]
    path = chain_of(tmp_path, *files)
    for part in chain.from_iterable(files):
        table.load(page(*part))
    expected = sorted((key, None, value) for key, value in table.entries.items())
    assert sorted(SavepointReader(path).read_python("op", "s")) == expected
    copy = SavepointWriter.from_existing(path).write(str(tmp_path / "copy"))
    assert sorted(SavepointReader(copy).read_python("op", "s")) == expected


def test_a_changed_file_is_noticed(tmp_path):
    path = chain_of(tmp_path, [(["a"], ["x" * 100])])
    file = tmp_path / "f0"
    file.write_bytes(file.read_bytes().replace(b"xxx", b"yyy", 1))
    with pytest.raises(CorruptSnapshot):
        read(path, "op", "s")


def test_values_of_classes_that_are_not_here_name_the_state(tmp_path):
    path = chain_of(tmp_path, [(["a"], [1])])
    file = tmp_path / "f0"
    held = page(["a"], [Row(1)]).replace(b"penstock.common.types", b"penstock.common.typos")
    assert b"typos" in held
    name = Name("op", Kind.KEYED, "s")
    ref = write_file(f"{tmp_path.as_uri()}/g", [State(name, [held])], compress=False, inline_below=0)
    metadata = read_snapshot(path)
    metadata.slots[0].files[:] = [ref]
    file.unlink()
    (tmp_path / "_metadata").unlink()
    write_savepoint(metadata, str(tmp_path))
    with pytest.raises(SnapshotError, match=r"keyed state 's' of operator 'op' cannot be unpickled.*importable"):
        read(path, "op", "s")


def test_an_incremental_checkpoint_of_a_job_with_removed_keys(tmp_path):
    script = [("ann", "home"), ("bo", "home"), ("cy", "x" * 3000), ("ann", "forget"), ("bo", "shop"), ("dee", "home")]
    options = {
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.num-retained": "2",
    }
    with in_process(epoch_records=1, clock=ManualClock(0, tick=10)):
        env = environment(1, **options)
        results = remembering(scripted(env, *script, stay=True).uid("script")).execute_and_collect()
        for _ in script:
            next(results)  # comes when a checkpoint holds it
        results.close()
    store = FolderStore(str(tmp_path), results._job.job_id.hex)
    newest = store.complete()[-1]
    assert len(newest.slots[0].files) > 2
    path = store.folder(newest.number)
    assert read(path, "remember", "count") == [("bo", None, 2), ("cy", None, 1), ("dee", None, 1)]
    assert SavepointReader(path).describe().startswith("checkpoint ")
    copy = SavepointWriter.from_existing(path).write(str(tmp_path / "copy"))
    assert read(copy, "remember", "words") == read(path, "remember", "words")
    assert read(copy, "remember", "_event_timers") == read(path, "remember", "_event_timers")
    assert len(read_snapshot(copy).slots[0].files) == 1 and read_snapshot(copy).savepoint
    assert run_from(copy, remembering, [("bo", "shop"), ("ann", "x")])[0][:2] == ("bo", 3)


# --- new savepoints ---
def counts(*rows, parallelism=1, max_parallelism=128):
    return SavepointWriter.new(max_parallelism, parallelism).with_keyed_state("remember", COUNT, rows)


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_job_continues_from_written_values_at_any_parallelism(tmp_path, slots, parallelism):
    users = [f"user {i}" for i in range(40)]
    path = counts(*((user, 100 + i) for i, user in enumerate(users)), parallelism=slots).write(str(tmp_path / "new"))
    visits = [(user, "home") for user in [*users, "user 1", "newcomer"]]
    results = run_from(path, remembering, visits, parallelism=parallelism)
    reached = {key: max(r[1] for r in results if r[0] == key) for key in [*users, "newcomer"]}
    assert reached == {**{u: 101 + i for i, u in enumerate(users)}, "user 1": 103, "newcomer": 1}


def test_entries_are_in_the_slots_that_own_their_key_groups(tmp_path):
    path = counts(*((i, i) for i in range(50)), parallelism=4, max_parallelism=16).write(str(tmp_path / "new"))
    metadata = read_snapshot(path)
    assert metadata.shapes == {"remember": Shape(4, 16, "remember")} and len(metadata.slots) == 4
    for index, slot in enumerate(metadata.slots):
        alone = dataclasses.replace(metadata, slots=[slot], shapes={"remember": Shape(1, 16)})
        reader = SavepointReader(path)
        reader.metadata = alone
        keys = [key for key, _, _ in reader.read_python("remember", "count")]
        assert keys and all(subtask_for_group(key_group(key, 16), 16, 4) == index for key in keys)


def test_every_kind_of_keyed_state_can_be_written(tmp_path):
    path = (
        SavepointWriter.new(parallelism=2)
        .with_keyed_state("remember", COUNT, [{"key": "ann", "value": 7}, Row(key="bo", value=1)])
        .with_keyed_state(
            "remember",
            WORDS,
            [
                {"key": "ann", "map_key": "home", "value": 4},
                {"key": "ann", "map_key": "shop", "value": 3},
                {"key": "bo", "value": {"home": 1}},
            ],
        )
        .with_keyed_state("remember", SEEN, [("ann", None, ["home", "shop"]), ("bo", ("home",)), ("cy", [])])
        .write(str(tmp_path / "new"))
    )
    assert read(path, "remember", "seen") == [("ann", None, ["home", "shop"]), ("bo", None, ["home"])]
    results = run_from(path, remembering, [("ann", "home"), ("bo", "shop")], parallelism=2)
    assert sorted(results) == [
        ("ann", 8, [("home", 5), ("shop", 3)], ["home", "shop", "home"]),
        ("bo", 2, [("home", 1), ("shop", 1)], ["home", "shop"]),
    ]


def test_the_key_may_be_other_columns_or_a_function(tmp_path):
    def written(name, rows, key):
        writer = SavepointWriter.new().with_keyed_state("op", COUNT, rows, key=key)
        return read(writer.write(str(tmp_path / name)), "op", "count")

    assert written("a", [{"user": "ann", "value": 1}], "user") == [("ann", None, 1)]
    assert written("b", [{"user": "ann", "day": 3, "value": 1}], ["user", "day"]) == [(("ann", 3), None, 1)]
    assert written("c", [{"mail": "ann@x", "value": 1}], lambda row: row["mail"][:3]) == [("ann", None, 1)]


def test_what_was_read_can_be_written_as_it_is(remembered, tmp_path):
    reader = SavepointReader.read(remembered)
    writer = SavepointWriter.new(parallelism=3)
    for descriptor in (COUNT, WORDS, SEEN):
        writer.with_keyed_state("remember", descriptor, reader.read_python("remember", descriptor.get_name()))
    path = writer.write(str(tmp_path / "again"))
    for name in ("count", "words", "seen"):
        assert read(path, "remember", name) == read(remembered, "remember", name)


def test_values_are_brought_into_the_declared_form(tmp_path):
    users = ValueStateDescriptor("user", Types.ROW_NAMED(["name", "age"], [Types.STRING(), Types.DOUBLE()]))
    writer = SavepointWriter.new().with_keyed_state("op", users, [(1, {"age": 3, "name": "ann"}), (2, ("bo", 4))])
    path = writer.write(str(tmp_path / "new"))
    assert read(path, "op", "user") == [(1, None, Row(name="ann", age=3.0)), (2, None, Row(name="bo", age=4.0))]


def test_written_values_expire_from_their_last_access_or_from_now(tmp_path):
    path = (
        SavepointWriter.new()
        .with_keyed_state(
            "fleeting",
            expiring(ValueStateDescriptor("value", Types.LONG())),
            [{"key": "old", "value": 1, "last_access": NOW}, {"key": "young", "value": 2, "last_access": NOW + 9000}],
        )
        .with_keyed_state(
            "fleeting",
            expiring(ListStateDescriptor("list", Types.LONG())),
            [{"key": "young", "value": [1, 2], "last_access": [NOW, NOW + 9000]}],
        )
        .with_keyed_state(
            "fleeting",
            expiring(MapStateDescriptor("map", Types.STRING(), Types.LONG())),
            [
                {"key": "young", "map_key": "1", "value": 1, "last_access": NOW},
                {"key": "young", "map_key": "2", "value": 2, "last_access": NOW + 9000},
            ],
        )
        .with_keyed_state("fleeting", expiring(ReducingStateDescriptor("sum", max, Types.LONG())), [("young", 9)])
        .write(str(tmp_path / "new"))
    )
    results = run_from(path, fleeting, [("old", 0), ("young", 0)], clock=ManualClock(NOW + 10_000))
    assert results == [("old", None, [], {}, None), ("young", 2, [2], {"2": 2}, 9)]


def test_list_state_is_dealt_out_and_union_state_shared(tmp_path):
    writer = SavepointWriter.new(parallelism=2).with_list_state("collecting", ITEMS, range(1, 6))
    path = writer.write(str(tmp_path / "new"))
    assert run_from(path, collecting, [9]) == [[1, 2, 3, 4, 5, 9]]

    def spread(stream):
        return stream.rebalance().map(Collecting()).uid("collecting")

    assert sorted(run_from(path, spread, [None, None], parallelism=2)) == [[1, 2, 3], [4, 5]]
    union = SavepointWriter.new(parallelism=2).with_list_state("collecting", ITEMS, [3, 4], union=True)

    def shared(stream):
        return stream.rebalance().map(Collecting(union=True)).uid("collecting")

    assert run_from(union.write(str(tmp_path / "union")), shared, [None, None, None], parallelism=3) == [[3, 4]] * 3


@pytest.mark.parametrize("rows", [{"eur": 5}, [("eur", 5)], [{"key": "eur", "value": 5}]], ids=str)
def test_broadcast_state_goes_to_every_slot(tmp_path, rows):
    path = SavepointWriter.new(parallelism=2).with_broadcast_state("limited", LIMITS, rows).write(str(tmp_path / "new"))
    assert sorted(run_from(path, limited, ["eur", "usd", "eur"], parallelism=3)) == [
        ("eur", 5),
        ("eur", 5),
        ("usd", None),
    ]


def test_state_of_windows_needs_a_namespace(tmp_path):
    window = TimeWindow(0, 10)
    rows = [("a", window, 3), {"key": "b", "namespace": Row(start=0, end=10), "value": 4}]
    path = SavepointWriter.new().with_keyed_state("total", COUNT, rows, window=True).write(str(tmp_path / "new"))
    assert read(path, "total", "count", window=True) == [("a", window, 3), ("b", window, 4)]
    with pytest.raises(ProgramError, match=r"need the columns key, namespace, value; these have key, value"):
        SavepointWriter.new().with_keyed_state("total", COUNT, [("a", 3)], window=True)
    with pytest.raises(ProgramError, match=r"only state of windows"):
        SavepointWriter.new().with_keyed_state("total", COUNT, [("a", window, 3)])


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([{"key": 1}], ProgramError, r"need the columns key, value and may have namespace; these have key$"),
        ([{"key": 1, "value": 1, "extra": 1}], ProgramError, r"these have extra, key, value"),
        ([{"key": 1, "map_key": 1, "value": 1}], ProgramError, r"these have key, map_key, value"),
        ([7], ProgramError, r"a row is a dict or Row .* and not 7"),
        ([(1, 2, 3, 4)], ProgramError, r"a row is a dict or Row"),
        ([(1, "x")], TypeMismatch, r"state 'count' of operator 'op': 'x'.* does not fit LONG"),
        ([(1, None)], ProgramError, r"cannot hold None"),
        ([(1, 1), (1.0, 2)], ProgramError, r"there are two rows for 1"),
        ([([1], 1)], UnsupportedKey, r"list cannot be a key"),
        ([(float("nan"), 1)], UnsupportedKey, r"NaN"),
    ],
)
def test_bad_rows_are_refused(rows, error, message):
    with pytest.raises(error, match=message):
        SavepointWriter.new().with_keyed_state("op", COUNT, rows)


def test_bad_arguments_are_refused(tmp_path):
    writer = SavepointWriter.new()
    with pytest.raises(ProgramError, match=r"two rows for \('a', 'k'\)"):
        rows = [{"key": "a", "map_key": "k", "value": 1}, {"key": "a", "map_key": "k", "value": 2}]
        writer.with_keyed_state("op", WORDS, rows)
    with pytest.raises(ProgramError, match=r"cannot hold \[1, None\]"):
        writer.with_keyed_state("op", ListStateDescriptor("x"), [("a", [1, None])])
    with pytest.raises(ProgramError, match=r"cannot hold 3"):
        writer.with_keyed_state("op", MapStateDescriptor("x"), [("a", 3)])
    with pytest.raises(ProgramError, match=r"needs a StateDescriptor, not 'count'"):
        writer.with_keyed_state("op", "count", [])
    with pytest.raises(ProgramError, match=r"needs a ListStateDescriptor"):
        writer.with_list_state("op", COUNT, [])
    with pytest.raises(ProgramError, match=r"cannot hold None"):
        writer.with_list_state("op", ITEMS, [1, None])
    with pytest.raises(ProgramError, match=r"only keyed state can"):
        writer.with_list_state("op", expiring(ListStateDescriptor("x")), [])
    with pytest.raises(ProgramError, match=r"needs a MapStateDescriptor"):
        writer.with_broadcast_state("op", ITEMS, {})
    with pytest.raises(ProgramError, match=r"a row is \(key, value\)"):
        writer.with_broadcast_state("op", LIMITS, [1])
    with pytest.raises(TypeMismatch, match=r"state 'limits' of operator 'op'"):
        writer.with_broadcast_state("op", LIMITS, {"eur": "much"})
    with pytest.raises(ProgramError, match=r"the uid of an operator"):
        writer.with_keyed_state("", COUNT, [])
    with pytest.raises(ProgramError, match=r"nothing to write"):
        writer.write(str(tmp_path / "new"))
    for parallelism, max_parallelism in [(0, 128), (129, 128), (1, 0), (1, 1 << 16)]:
        with pytest.raises(InvalidParallelism):
            SavepointWriter.new(max_parallelism, parallelism)


def test_a_folder_that_exists_is_left_alone(tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(StorageError, match=r"exists already"):
        counts(("a", 1)).write(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_large_state_is_in_files_and_the_folder_can_be_moved(tmp_path):
    counts(*((i, i) for i in range(20_000)), parallelism=2).write(str(tmp_path / "new"))
    assert len(list((tmp_path / "new").iterdir())) == 3
    (tmp_path / "new").rename(tmp_path / "moved")
    moved = SavepointReader(str(tmp_path / "moved"))
    assert sorted(moved.read_python("remember", "count")) == [(i, None, i) for i in range(20_000)]


# --- changed copies ---
def test_an_unchanged_copy_is_as_good_as_the_original(remembered, tmp_path):
    path = SavepointWriter.from_existing(remembered).write(str(tmp_path / "copy"))
    old, new = read_snapshot(remembered), read_snapshot(path)
    assert (new.shapes, new.number, new.job_name, new.savepoint) == (old.shapes, old.number, old.job_name, True)
    assert [slot.schemas for slot in new.slots] == [slot.schemas for slot in old.slots]
    for name in ("count", "words", "seen", "_event_timers"):
        assert read(path, "remember", name) == read(remembered, "remember", name)
    with in_process():
        env = environment(2, path)
        stream = scripted(env, *VISITS, ("ann", "end")).uid("script")  # goes on behind what was read before
        with remembering(stream).execute_and_collect() as results:
            assert [result[:2] for result in results] == [("ann", 4)]


def test_values_are_transformed_and_dropped(remembered, tmp_path):
    def corrected(key, namespace, value):
        assert namespace is None
        return None if key == "cy" else value * 10

    def renamed(key, namespace, value):
        return {word.upper(): n for word, n in value.items() if key == "ann"}

    before = Path(remembered.removeprefix("file://"), "_metadata").read_bytes()
    writer = SavepointWriter.from_existing(remembered).transform_state("remember", "count", corrected)
    writer.transform_state("remember", "count", lambda key, namespace, value: value + 1)
    path = writer.transform_state("remember", "words", renamed).write(str(tmp_path / "copy"))
    assert read(path, "remember", "count") == [("ann", None, 31), ("bo", None, 11)]
    assert read(path, "remember", "words") == [("ann", None, {"HOME": 1, "SHOP": 2})]
    assert read(path, "remember", "seen") == read(remembered, "remember", "seen")
    assert Path(remembered.removeprefix("file://"), "_metadata").read_bytes() == before


def test_a_descriptor_says_what_transformed_values_are(remembered, tmp_path):
    now = ValueStateDescriptor("count", Types.ROW_NAMED(["n"], [Types.STRING()]))
    writer = SavepointWriter.from_existing(remembered)
    path = writer.transform_state(
        "remember", "count", lambda key, namespace, value: Row(n=str(value)), descriptor=now
    ).write(str(tmp_path / "copy"))
    assert read(path, "remember", "count")[0] == ("ann", None, Row(n="3"))
    assert "value<ROW<n STRING>>" in SavepointReader(path).describe()
    writer = SavepointWriter.from_existing(remembered)
    with pytest.raises(TypeMismatch, match=r"state 'count' of operator 'remember'"):
        writer.transform_state("remember", "count", lambda *_: Row(n=1), descriptor=now).write(str(tmp_path / "bad"))
    assert not (tmp_path / "bad").exists()
    with pytest.raises(
        ProgramError,
        match=r"the descriptor names the state 'words', but the state to transform "
        "is 'count'",
    ):
        writer.transform_state("remember", "count", lambda *_: 1, descriptor=WORDS)


def test_a_function_that_fails_names_the_state_and_the_key(remembered, tmp_path):
    writer = SavepointWriter.from_existing(remembered).transform_state("remember", "count", lambda k, n, v: v / 0)
    with pytest.raises(ProgramError, match=r"'count' of operator 'remember': the function raised ZeroDivisionError"):
        writer.write(str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


def test_times_of_last_access_survive_a_change(tmp_path):
    _, path = savepoint(tmp_path / "s", fleeting, [("k", 1), ("k", 2)], clock=ManualClock(NOW))
    writer = SavepointWriter.from_existing(path)
    writer.transform_state("fleeting", "value", lambda k, n, v: v + 1)
    writer.transform_state("fleeting", "list", lambda k, n, v: [*v, 3])
    writer.transform_state("fleeting", "map", lambda k, n, v: {**v, "new": 3})
    plain = ReducingStateDescriptor("sum", max, Types.LONG())
    writer.transform_state("fleeting", "sum", lambda k, n, v: v, descriptor=plain)
    changed = writer.write(str(tmp_path / "copy"))
    back = SavepointWriter.from_existing(changed)
    back.transform_state("fleeting", "sum", lambda k, n, v: v, descriptor=expiring(plain))
    again = back.write(str(tmp_path / "again"))
    young = run_from(again, fleeting, [("k", 0)], clock=ManualClock(NOW + 9_000))
    assert young == [("k", 3, [1, 2, 3], {"1": 1, "2": 2, "new": 3}, 3)]
    old = run_from(again, fleeting, [("k", 0)], clock=ManualClock(NOW + 11_000))
    assert old == [("k", None, [], {}, 3)]


def test_operator_state_is_transformed_element_by_element(tmp_path):
    _, path = savepoint(tmp_path / "lists", collecting, [1, 2, 3])
    copy = SavepointWriter.from_existing(path).transform_state(
        "collecting", "items", lambda key, namespace, value: None if value == 2 else value * 10
    )
    assert read(copy.write(str(tmp_path / "copy")), "collecting", "items") == [(None, None, 10), (None, None, 30)]
    _, path = savepoint(tmp_path / "maps", limited, [("eur", 5), ("usd", 7)], parallelism=2, results=4)
    copy = SavepointWriter.from_existing(path).transform_state(
        "limited", "limits", lambda key, namespace, value: None if key == "usd" else value + 1
    )
    path = copy.write(str(tmp_path / "copied maps"))
    assert sorted(run_from(path, limited, ["eur", "usd"], parallelism=2)) == [("eur", 6), ("usd", None)]


def test_states_and_operators_are_removed(remembered, tmp_path):
    writer = SavepointWriter.from_existing(remembered).remove_state("remember", "seen").remove_operator("script")
    path = writer.remove_state("remember", "_event_timers").write(str(tmp_path / "copy"))
    remember, _ = SavepointReader(path).operators()
    assert {state.name for state in remember.states} == {"count", "words", "_processing_timers"}
    names = {section for slot in read_snapshot(path).slots for section in slot.schemas}
    assert not any(name.name == "seen" or name.uid == "script" for name in names)
    results = run_from(path, remembering, [("ann", "x")], parallelism=2)
    assert results == [("ann", 4, [("home", 1), ("shop", 2), ("x", 1)], ["x"])]
    with pytest.raises(SnapshotError, match=r"has no state 'seen'"):
        writer.transform_state("remember", "seen", lambda *_: None)
    with pytest.raises(SnapshotError, match=r"no operator with the uid 'script'. Uids are: 'remember'"):
        writer.remove_operator("script")


def test_states_are_replaced_and_added(remembered, tmp_path):
    writer = SavepointWriter.from_existing(remembered, max_parallelism=64)
    writer.with_keyed_state("remember", COUNT, [("ann", 50), ("zoe", 1)])
    writer.with_keyed_state("other", WORDS, [("ann", {"x": 1})])
    writer.with_list_state("other", ITEMS, [1], union=True).with_list_state("other", ITEMS, [1, 2])
    path = writer.write(str(tmp_path / "copy"))
    assert read(path, "remember", "count") == [("ann", None, 50), ("zoe", None, 1)]
    assert read(path, "remember", "seen") == read(remembered, "remember", "seen")
    assert read(path, "other", "items") == [(None, None, 1), (None, None, 2)]
    assert read_snapshot(path).shapes["other"] == Shape(2, 64, "other")
    with pytest.raises(ProgramError, match=r"is replaced by new rows"):
        writer.transform_state("other", "words", lambda *_: None)
    assert "other" not in writer.remove_operator("other")._shapes


def test_an_operator_that_was_removed_can_be_written_anew(remembered, tmp_path):
    writer = SavepointWriter.from_existing(remembered).remove_operator("remember")
    path = writer.with_keyed_state("remember", COUNT, [("ann", 1)]).write(str(tmp_path / "copy"))
    assert read(path, "remember", "count") == [("ann", None, 1)]
    with pytest.raises(SnapshotError, match=r"has no state 'words'. Its states are: 'count' \(keyed\)$"):
        read(path, "remember", "words")


def test_timers_are_not_transformed(remembered):
    with pytest.raises(ProgramError, match=r"holds timers, which can be removed"):
        SavepointWriter.from_existing(remembered).transform_state("remember", "_event_timers", lambda *_: None)


def test_window_contents_are_transformed_and_fire(tmp_path):
    script = [at(("a", 1), 1), at(("b", 2), 2), watermark(5)]
    with in_process():
        env = environment(1)
        found = windowed(scripted(env, *script, stay=True).uid("script")).execute_and_collect()
        path = None
        while path is None or len(read(path, "total", "_window_contents")) < 2:
            path = found._job.trigger_savepoint(str(tmp_path / "saved"), False, False)
        found.close()
    window = TimeWindow(0, 10)
    assert read(path, "total", "_window_contents") == [("a", window, [("a", 1)]), ("b", window, [("b", 2)])]
    copy = SavepointWriter.from_existing(path)
    copy.transform_state("total", "_window_contents", lambda key, _, held: held * 3 if key == "a" else held)
    copy.remove_operator("script")
    path = copy.write(str(tmp_path / "copy"))
    assert sorted(run_from(path, windowed, [at(("c", 1), 3)])) == [("a", 3), ("b", 1), ("c", 1)]


def test_states_of_one_name_are_told_apart_by_kind(tmp_path):
    both = MapStateDescriptor("limits", Types.STRING(), Types.LONG())
    writer = (
        SavepointWriter.new().with_broadcast_state("op", both, {"a": 1}).with_keyed_state("op", both, [(1, {"b": 2})])
    )
    with pytest.raises(SnapshotError, match=r"say kind='broadcast' or kind='keyed'"):
        writer.remove_state("op", "limits")
    path = writer.write(str(tmp_path / "new"))
    assert read(path, "op", "limits", kind="keyed") == [(1, None, {"b": 2})]
    assert read(path, "op", "limits", kind="broadcast") == [("a", None, 1)]


# --- columns ---
class Color(Enum):
    RED = 1


@dataclasses.dataclass
class Point:
    x: int
    y: int


INFERRED = [
    ([None], "string"),
    ([1, 2, None], "bigint"),
    ([1, 2.5], "double"),
    ([1 << 70, 1], "decimal(38,0)"),
    ([Decimal("1.5"), Decimal(2)], "decimal(38,18)"),
    ([True, False], "boolean"),
    (["a", UUID(int=1), Color.RED, datetime.time(1), GlobalWindow.get()], "string"),
    ([b"a", bytearray(b"b")], "binary"),
    ([datetime.date(2024, 1, 2)], "date"),
    ([datetime.timedelta(seconds=1)], "interval day to second"),
    ([datetime.datetime(2024, 1, 2)], "timestamp_ntz"),
    ([datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC), Instant(5, 0)], "timestamp"),
    ([(1, "a"), (2, None)], "struct<_1:bigint,_2:string>"),
    ([Row(a=1, b=None), Row(b="x", a=2)], "struct<a:bigint,b:string>"),
    ([Row(1)], "struct<f0:bigint>"),
    ([Point(1, 2), Point(1, None)], "struct<x:bigint,y:bigint>"),
    ([[1], [], [2.5], {3}], "array<double>"),
    ([{"a": [1]}, {}], "map<string,array<bigint>>"),
    ([TimeWindow(0, 10)], "struct<start:bigint,end:bigint>"),
    ([CountWindow(1)], "struct<id:bigint>"),
    ([{1: "a"}, "x"], "repr"),
    ([1, "x"], "repr"),
    ([True, 1], "repr"),
    ([{None: 1}], "repr"),
    ([1 << 200], "repr"),
    ([Decimal("NaN")], "repr"),
    ([()], "repr"),
    ([object], "repr"),
]
EVERYTHING = [value for values, _ in INFERRED for value in values]


def learned(*values):
    return reduce(lambda cell, value: cell.learn(value), values, Nothing())


@pytest.mark.parametrize(("values", "expected"), INFERRED, ids=str)
def test_the_type_of_a_column_is_found_from_its_values(values, expected):
    for cell in (learned(*values), reduce(lambda one, other: one.merge(other), map(learned, values))):
        found = "repr" if cell.shows_repr() else cell.type().simpleString()
        assert found == expected
    assert ("comment" in column("value", learned(*values)).metadata) is (expected == "repr")


@pytest.mark.parametrize("one", EVERYTHING, ids=repr)
def test_a_column_has_a_place_for_whatever_it_has_met(one):
    for other in EVERYTHING:
        for nest in (lambda v: v, lambda v: [v], lambda v: (v, 1), lambda v: {"k": v}):
            both = nest(one), nest(other)
            for cell in (learned(*both), learned(both[0]).merge(learned(both[1]))):
                assert [cell.plain(value) is None for value in both] == [value is None for value in both]


def test_declared_types_are_kept_until_a_value_does_not_fit():
    info = Types.ROW_NAMED(["n", "l", "d"], [Types.INT(), Types.LIST(Types.BYTE()), Types.DATACLASS(Point)])
    cell = cell_of_schema(schema_of(ValueStateDescriptor("s", info))["value"])
    assert cell.type().simpleString() == "struct<n:int,l:array<tinyint>,d:string>"
    for fitting in (Row(n=1, l=[1], d=Point(1, 2)), {"d": None, "n": 1, "l": []}, (1, None, None), [1, [2], None]):
        cell = cell.learn(fitting)
    assert cell.type().simpleString() == "struct<n:int,l:array<tinyint>,d:struct<x:bigint,y:bigint>>"
    assert cell.plain({"d": None, "n": 1, "l": [5]}) == (1, [5], None)
    assert cell.learn((1 << 40, [300], None)).type().simpleString().startswith("struct<n:bigint,l:array<bigint>")
    assert cell.learn(Row(other=1)).shows_repr() and cell.learn((1, 2)).shows_repr()
