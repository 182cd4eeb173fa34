"""Savepoints and checkpoints as starting points: what is matched, what is refused, what becomes of them."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from penstock.common import Duration, JobStatus, Row, Time, Types, WatermarkStrategy
from penstock.common.watermark_strategy import TimestampAssigner, Watermark, WatermarkGenerator
from penstock.datastream import (
    DataStream,
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from penstock.datastream.functions import (
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    SourceFunction,
)
from penstock.datastream.state import StateTtlConfig, ValueStateDescriptor
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.engine.checkpoint.checkpoint_storage_actions import Archive, StorageOrder, Tidy
from penstock.engine.checkpoint.store import dispose_savepoint, read_snapshot
from penstock.engine.operators.sources.readers import FedSource, IteratorEnumerator
from penstock.engine.state.key_groups import key_group
from penstock.errors import (
    CheckpointFailed,
    ConfigurationError,
    CorruptSnapshot,
    JobFailed,
    NoSuchSnapshot,
    PenstockError,
    StateMigrationException,
    StateNotRestored,
)
from penstock.testing import ManualClock, at, idle, pause, scripted, watermark
from tests.recovery.conftest import Build, Stage, SteeredCluster
from tests.recovery.programs import (
    PARTITIONS,
    STORES,
    Partitions,
    SecondField,
    StoreSink,
    build_everything,
    key_of,
    periodic,
    punctuated,
    seen,
    write_lines,
)

JOB_ID = "5a7e" * 8
OWN_JOB = {"pipeline_job__id": JOB_ID}
RECOVERED = {**OWN_JOB, "execution_recover": "latest"}


def from_path(path: str, **options: Any) -> dict[str, Any]:
    return {"execution_state__recovery_path": path, **options}


# --- small programs ---
class Keep(KeyedProcessFunction):
    """Adds up each key's numbers in one state for each descriptor, and tells the sums."""

    def __init__(self, *descriptors: Any) -> None:
        self.descriptors = descriptors

    def open(self, runtime_context: Any) -> None:
        self.states = [runtime_context.get_state(descriptor) for descriptor in self.descriptors]

    def process_element(self, value: int, ctx: Any) -> Iterable[Any]:
        for state in self.states:
            state.update((state.value() or 0) + value)
        yield ctx.get_current_key(), [state.value() for state in self.states]


def of_int(name: str) -> ValueStateDescriptor:
    return ValueStateDescriptor(name, Types.INT())


NUMBERS = range(1, 97)


@dataclass
class Program:
    """A program that writes into a store of its own, and is built anew for every run."""

    store: str

    def out(self, stream: DataStream, name: str = "out") -> None:
        stream.sink_to(StoreSink(self.store, name)).uid(f"sink {name}")

    def results(self, name: str = "out") -> list[Any]:
        return STORES[self.store].records(name)

    def kept(self, *descriptors: Any, uid: str = "keep") -> Build:
        """Numbers by three keys, added up in as many states as there are descriptors."""

        def build(env: StreamExecutionEnvironment) -> None:
            numbers = env.from_collection(NUMBERS).uid("numbers")
            self.out(numbers.key_by(lambda n: n % 3).process(Keep(*descriptors)).uid(uid))

        return build


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Eight records an epoch, a checkpoint about every second epoch.

    A job that is held at epoch n has read 8 (n + 1) records when it stops.
    """
    return Stage(tmp_path, ManualClock(now=1_000_000, tick=4), epoch_records=8)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(str(tmp_path))


def whole(stage: Stage, make: Callable[[Program], Build], name: str = "out") -> list[Any]:
    """What a program yields that is never stopped."""
    undisturbed = Program(f"{stage.checkpoints} undisturbed")
    stage.run(make(undisturbed))
    return undisturbed.results(name)


def rows_by_key(results: Iterable[Any]) -> dict[Any, list[Any]]:
    by_key: dict[Any, list[Any]] = {}
    for key, value in results:
        by_key.setdefault(key, []).append(value)
    return by_key


# --- which state belongs to which operator ---
def two_sums(program: Program, *, swapped: bool = False, uids: tuple[str, ...] = ("first", "second")) -> Build:
    def build(env: StreamExecutionEnvironment) -> None:
        keyed = env.from_collection(NUMBERS).uid("numbers").key_by(lambda n: n % 3)
        for uid in reversed(uids) if swapped else uids:
            program.out(keyed.process(Keep(of_int("sum"))).uid(uid), uid)

    return build


def test_operators_are_found_by_uid_in_whatever_order(stage: Stage, program: Program) -> None:
    expected = whole(stage, two_sums, "first")
    path = stage.start(two_sums(program), hold_at=4).stop(stage.savepoints)
    stage.run(two_sums(program, swapped=True), **from_path(path))
    assert program.results("first") == program.results("second") == expected


def test_an_added_operator_starts_empty(stage: Stage, program: Program) -> None:
    path = stage.start(two_sums(program, uids=("first",)), hold_at=4).stop(stage.savepoints)
    stage.run(two_sums(program), **from_path(path))
    assert program.results("first") == whole(stage, two_sums, "first")
    later = {key: [n for n in NUMBERS if n % 3 == key and n > 40] for key in range(3)}
    sums = {key: [[sum(numbers[: i + 1])] for i in range(len(numbers))] for key, numbers in later.items()}
    assert rows_by_key(program.results("second")) == sums


def test_a_removed_operator_is_an_error_unless_allowed(stage: Stage, program: Program) -> None:
    path = stage.start(two_sums(program), hold_at=4).stop(stage.savepoints)
    alone = two_sums(program, uids=("first",))
    with pytest.raises(StateNotRestored, match=r"\(uid second\), Sink \(uid sink second\)"):
        stage.start(alone, **from_path(path))
    stage.run(alone, **from_path(path, execution_state__recovery_ignore__unclaimed__state=True))
    assert program.results("first") == whole(stage, two_sums, "first")


def test_a_changed_uid_is_an_error_that_names_both(stage: Stage, program: Program) -> None:
    path = stage.start(program.kept(of_int("sum")), hold_at=4).stop(stage.savepoints)
    with pytest.raises(StateNotRestored, match=r"\(uid keep\).*The program has the uids.*kept differently"):
        stage.start(program.kept(of_int("sum"), uid="kept differently"), **from_path(path))


def test_a_removed_source_is_an_error(stage: Stage, program: Program) -> None:
    """The position of the source would be lost."""
    path = stage.start(program.kept(of_int("sum")), hold_at=4).stop(stage.savepoints)

    def build(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection(NUMBERS).uid("other numbers")
        program.out(numbers.key_by(lambda n: n % 3).process(Keep(of_int("sum"))).uid("keep"))

    with pytest.raises(StateNotRestored, match=r"uid numbers"):
        stage.start(build, **from_path(path))


def test_an_uid_that_a_stateless_operator_had_may_go_to_a_source(stage: Stage, program: Program) -> None:
    def build(before: str, after: str) -> Build:
        def build(env: StreamExecutionEnvironment) -> None:
            program.out(env.from_collection(NUMBERS).uid("numbers").map(lambda n: n).uid(before))
            program.out(env.from_collection(["a", "b"]).uid(after), "second")

        return build

    path = stage.start(build("map", "source"), hold_at=4).stop(stage.savepoints)
    options = from_path(path, execution_state__recovery_ignore__unclaimed__state=True)
    stage.run(build("another map", "map"), **options)
    assert program.results() == list(NUMBERS)
    assert program.results("second") == ["a", "b", "a", "b"], "the second source is a new one"


# --- states of an operator ---
def test_states_are_found_by_name_and_an_added_one_is_empty(stage: Stage, program: Program) -> None:
    path = stage.start(program.kept(of_int("a"), of_int("b")), hold_at=4).stop(stage.savepoints)
    stage.run(program.kept(of_int("b"), of_int("new"), of_int("a")), **from_path(path))
    last = {key: sums[-1] for key, sums in rows_by_key(program.results()).items()}
    for key in range(3):
        all_of_it = sum(n for n in NUMBERS if n % 3 == key)
        assert last[key] == [all_of_it, sum(n for n in NUMBERS if n % 3 == key and n > 40), all_of_it]


@pytest.mark.parametrize("backend", [HashMapStateBackend, EmbeddedRocksDBStateBackend])
@pytest.mark.parametrize("parallelisms", [(1, 1, 1), (2, 3, 1)])
def test_a_state_that_nobody_asks_for_is_kept(
    stage: Stage, program: Program, parallelisms: tuple[int, ...], backend: Any
) -> None:
    def configure(env: StreamExecutionEnvironment) -> None:
        env.set_state_backend(backend())

    first, second, third = parallelisms
    both, one = program.kept(of_int("a"), of_int("b")), program.kept(of_int("a"))
    path = stage.start(both, first, hold_at=4, configure=configure).stop(stage.savepoints)
    path = stage.start(one, second, hold_at=4, configure=configure, **from_path(path)).stop(stage.savepoints)
    stage.run(both, third, configure=configure, **from_path(path))
    last = {key: sums[-1] for key, sums in rows_by_key(program.results()).items()}
    for key in range(3):
        numbers = [n for n in NUMBERS if n % 3 == key]
        assert last[key] == [sum(numbers), sum(n for n in numbers if n <= 40 or n > 80)]


# --- types ---
@pytest.mark.parametrize(("wider", "kind"), [(Types.LONG(), int), (Types.DOUBLE(), float), (None, int)])
@pytest.mark.parametrize("after", [1, 3])
def test_a_wider_type_takes_the_values_over(stage: Stage, program: Program, wider: Any, kind: type, after: int) -> None:
    path = stage.start(program.kept(of_int("sum")), 2, hold_at=3).stop(stage.savepoints)
    stage.run(program.kept(ValueStateDescriptor("sum", wider)), after, **from_path(path))
    last = {key: sums[-1] for key, sums in rows_by_key(program.results()).items()}
    assert last == {key: [sum(n for n in NUMBERS if n % 3 == key)] for key in range(3)}
    assert {type(value) for [value] in last.values()} == {kind}


def expiring(descriptor: ValueStateDescriptor, days: int = 30) -> ValueStateDescriptor:
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(days)).build())
    return descriptor


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (of_int("s"), ValueStateDescriptor("s", Types.SHORT()), "INT may become"),
        (ValueStateDescriptor("s", Types.DOUBLE()), of_int("s"), "DOUBLE may only become undeclared"),
        (of_int("s"), ValueStateDescriptor("s", Types.STRING()), "INT may become"),
        (of_int("s"), expiring(of_int("s")), "without a time to live"),
        (expiring(of_int("s")), of_int("s"), "with a time to live"),
    ],
    ids=["INT to SHORT", "DOUBLE to INT", "INT to STRING", "TTL switched on", "TTL switched off"],
)
def test_a_change_that_is_not_allowed_is_refused_at_once(
    stage: Stage, program: Program, before: Any, after: Any, why: str
) -> None:
    path = stage.start(program.kept(before), hold_at=3).stop(stage.savepoints)
    job = stage.start(program.kept(after), 2, **from_path(path))
    error = job.outcome()
    assert isinstance(error, StateMigrationException) and isinstance(error, JobFailed)
    assert "state 's' was saved as" in str(error) and why in str(error)
    assert job.cluster.ran == 0 and job.restarts() == 0


def test_another_time_to_live_is_fine(stage: Stage, program: Program) -> None:
    path = stage.start(program.kept(expiring(of_int("s"))), hold_at=3).stop(stage.savepoints)
    stage.run(program.kept(expiring(of_int("s"), days=60)), **from_path(path))
    assert program.results() == whole(stage, lambda p: p.kept(of_int("s")))


class Visits(KeyedProcessFunction):
    """Asks for its state when an element comes, not before."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def open(self, runtime_context: Any) -> None:
        self.context = runtime_context

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        rows = Types.ROW_NAMED(self.names, [Types.INT()] * len(self.names))
        state = self.context.get_state(ValueStateDescriptor("visits", rows))
        row = state.value() or Row(**dict.fromkeys(self.names, 0))
        row["n"] += 1
        state.update(row)
        yield value, [row[name] for name in self.names]


def test_a_type_changed_in_some_subtasks_only_is_changed_in_the_others_or_refused(
    stage: Stage, program: Program
) -> None:
    """Between the two savepoints only one subtask met an element, so that only its values were converted."""
    one, other = 0, next(key for key in range(100) if key_group(key, 128) // 64 != key_group(0, 128) // 64)
    script = [one, other, *[pause()] * 6, one, *[pause()] * 6, one, other, *[pause()] * 6]

    def build(*names: str) -> Build:
        def build(env: StreamExecutionEnvironment) -> None:
            program.out(scripted(env, *script).uid("keys").key_by(lambda k: k).process(Visits([*names])).uid("visits"))

        return build

    path = stage.start(build("n"), 2, hold_at=4).stop(stage.savepoints)
    path = stage.start(build("more", "n"), 2, hold_at=4, **from_path(path)).stop(stage.savepoints)
    outcome = stage.start(build("more", "n"), 1, **from_path(path)).outcome()
    if isinstance(outcome, StateMigrationException):
        assert "with different types by different subtasks" in str(outcome)
    else:
        assert rows_by_key(program.results()) == {one: [[1], [None, 2], [None, 3]], other: [[1], [None, 2]]}


# --- draining ---
class Sizes(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        yield key, (context.window().start, sorted(e[2] for e in elements))


class AtTheEnd(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(1_000_000 + value[2])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), timestamp


EVENTS = [("ab"[n % 2], 10 * n, n) for n in range(96)]


def windows_and_timers(program: Program, events: list[Any] = EVENTS) -> Build:
    def build(env: StreamExecutionEnvironment) -> None:
        keyed = periodic(env.from_collection(events).uid("events"), "time").key_by(key_of)
        sized = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(150))).process(Sizes()).uid("sizes")
        program.out(sized, "windows")
        program.out(keyed.process(AtTheEnd()).uid("end"), "timers")

    return build


def bags(program: Program) -> dict[str, Any]:
    return {name: Counter(map(repr, program.results(name))) for name in ("windows", "timers")}


@pytest.mark.parametrize("after", [1, 3])
def test_a_drained_job_ends_as_if_its_input_had(stage: Stage, program: Program, after: int) -> None:
    parts = [Program(f"{program.store} {part}") for part in ("before", "after")]
    stage.run(windows_and_timers(parts[0], EVENTS[:40]))
    stage.run(windows_and_timers(parts[1], EVENTS[40:]))
    path = stage.start(windows_and_timers(program), hold_at=4).stop(stage.savepoints, drain=True)
    assert read_snapshot(path).drained
    assert bags(program) == bags(parts[0])
    stage.run(windows_and_timers(program), after, **from_path(path))
    assert bags(program) == {name: bags(parts[0])[name] + bags(parts[1])[name] for name in bags(program)}


def test_a_job_that_is_not_drained_fires_nothing_early(stage: Stage, program: Program) -> None:
    expected = Program(f"{program.store} whole")
    stage.run(windows_and_timers(expected))
    path = stage.start(windows_and_timers(program), hold_at=4).stop(stage.savepoints)
    assert not read_snapshot(path).drained
    assert program.results("timers") == []
    assert 0 < len(program.results("windows")) < 6
    stage.run(windows_and_timers(program), **from_path(path))
    assert bags(program) == bags(expected)


EVENT_TIME = {
    "event timers", "tumbling", "sliding", "session", "early session", "interval join", "window join", "broadcast",
}  # fmt: skip
"""Branches of the program with everything that yield something else when event time comes to its end early."""


@pytest.mark.parametrize("after", [2, 5])
def test_what_does_not_depend_on_event_time_survives_draining(stage: Stage, tmp_path: Path, after: int) -> None:
    stage.epoch_records = 40
    lines, stores = write_lines(tmp_path / "lines"), (f"{tmp_path} whole", f"{tmp_path} parts")
    stage.run(build_everything(stores[0], lines))
    build = build_everything(stores[1], lines)
    path = stage.start(build, 2, hold_at=9).stop(stage.savepoints, drain=True)
    stage.run(build, after, **from_path(path))
    expected, got = seen(stores[0]), seen(stores[1])
    for branch in sorted(set(expected) - EVENT_TIME):
        assert got[branch] == expected[branch], branch


class WatermarksSeen(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value[2], ctx.timer_service().current_watermark()


@pytest.mark.parametrize("after", [1, 3])
def test_event_time_does_not_go_back(stage: Stage, program: Program, after: int) -> None:
    def build(p: Program) -> Build:
        def build(env: StreamExecutionEnvironment) -> None:
            stamped = punctuated(env.from_collection(EVENTS).uid("events"), "time")
            p.out(stamped.key_by(key_of).process(WatermarksSeen()).uid("seen"))

        return build

    path = stage.start(build(program), 2, hold_at=4).stop(stage.savepoints)
    stage.run(build(program), after, **from_path(path))
    assert sorted(program.results()) == sorted(whole(stage, build))


# --- what becomes of the files ---
def stopped(stage: Stage, program: Program, **options: Any) -> str:
    return stage.start(program.kept(of_int("sum")), hold_at=4, **options).stop(stage.savepoints)


@pytest.mark.parametrize("claim", ["CLAIM", "NO_CLAIM"])
def test_a_claimed_savepoint_goes_with_the_first_checkpoint(stage: Stage, program: Program, claim: str) -> None:
    path = stopped(stage, program)
    options = from_path(path, execution_state__recovery_claim__mode=claim)
    job = stage.start(program.kept(of_int("sum")), hold_at=0, **options).wait_until_held()
    assert read_snapshot(path).savepoint
    job.finish()
    assert Path(urlparse(path).path).exists() is (claim == "NO_CLAIM")
    assert program.results() == whole(stage, lambda p: p.kept(of_int("sum")))


def test_a_claimed_savepoint_stays_as_long_as_it_is_needed(stage: Stage, program: Program) -> None:
    """A crash before the first checkpoint goes back to the savepoint."""
    path = stopped(stage, program)
    options = from_path(path, execution_state__recovery_claim__mode="CLAIM")
    job = stage.run(program.kept(of_int("sum")), 3, crashes={0: "after", 1: "before", 2: "before"}, **options)
    assert job.restarts() == 3
    assert sorted(program.results()) == sorted(whole(stage, lambda p: p.kept(of_int("sum"))))


@pytest.mark.parametrize("name", ["", "/", "/_metadata"])
def test_a_savepoint_is_named_by_its_folder_or_its_metadata(stage: Stage, program: Program, name: str) -> None:
    path = stopped(stage, program)
    stage.run(program.kept(of_int("sum")), **from_path(path + name))
    assert program.results() == whole(stage, lambda p: p.kept(of_int("sum")))


def test_disposing_of_a_savepoint(stage: Stage, program: Program) -> None:
    path = stopped(stage, program)
    dispose_savepoint(path)
    assert list(stage.savepoints.iterdir()) == []
    with pytest.raises(NoSuchSnapshot, match="no checkpoint or savepoint at"):
        dispose_savepoint(path)
    with pytest.raises(NoSuchSnapshot, match="no checkpoint or savepoint at"):
        stage.start(program.kept(of_int("sum")), **from_path(path))


def test_checkpoints_are_not_disposed_of(stage: Stage, program: Program) -> None:
    job = stage.start(program.kept(of_int("sum")), hold_at=6)
    job.cancel()
    path = stage.newest_checkpoint(job)
    assert path is not None
    with pytest.raises(NoSuchSnapshot, match="is a checkpoint"):
        dispose_savepoint(path)
    assert read_snapshot(path).number


def many_keys(program: Program) -> Build:
    """State that is too large for the metadata, of which every epoch changes a part."""

    def build(env: StreamExecutionEnvironment) -> None:
        numbers = env.from_collection([*range(300), *range(250, 350)]).uid("numbers")
        keyed = numbers.key_by(lambda n: n)
        program.out(keyed.map_with_state(lambda n, s: ((n, (s or 0) + 1), (s or 0) + 1)).uid("count"))
        program.out(keyed.map_with_state(lambda n, s: (n, f"{n:0200}")).uid("large"), "large")

    return build


MANY = Counter([*((n, 1) for n in range(350)), *((n, 2) for n in range(250, 300))])


def test_a_savepoint_can_be_moved(stage: Stage, program: Program, tmp_path: Path) -> None:
    path = stage.start(many_keys(program), 2, hold_at=35).stop(stage.savepoints)
    assert len(list(Path(urlparse(path).path).iterdir())) == 3, "metadata and a file for each slot"
    elsewhere = tmp_path / "else where" / "#1 50%"
    shutil.copytree(urlparse(path).path, elsewhere)
    shutil.rmtree(stage.savepoints)
    shutil.rmtree(stage.checkpoints, ignore_errors=True)
    stage.run(many_keys(program), 3, **from_path(str(elsewhere)))
    assert Counter(program.results()) == MANY


@pytest.mark.parametrize("what", ["_metadata", "slot-0", "slot-1"])
@pytest.mark.parametrize("how", ["changed", "cut", "gone"])
def test_a_damaged_savepoint_is_refused(stage: Stage, program: Program, what: str, how: str) -> None:
    path = stage.start(many_keys(program), 2, hold_at=35).stop(stage.savepoints)
    [file] = Path(urlparse(path).path).glob(f"{what}*")
    data = file.read_bytes()
    if how == "gone":
        file.unlink()
    else:
        middle = len(data) // 2
        file.write_bytes(data[:middle] + (bytes([data[middle] ^ 1]) + data[middle + 1 :] if how == "changed" else b""))
    with pytest.raises((CorruptSnapshot, NoSuchSnapshot)) as raised:
        stage.run(many_keys(program), **from_path(path))
    assert file.name in str(raised.value)


# --- checkpoints as starting points ---
@pytest.mark.parametrize("epoch", [35, 40])
@pytest.mark.parametrize(
    ("incremental", "inline"), [(True, "1 mb"), (True, "0 b"), (False, "1 mb")], ids=["inline", "files", "full"]
)
@pytest.mark.parametrize("after", [2, 3])
def test_a_retained_checkpoint_is_a_starting_point(
    stage: Stage, program: Program, epoch: int, incremental: bool, inline: str, after: int
) -> None:
    """Most of the state is in the files of earlier checkpoints, on which the last one builds."""
    settings = {
        "execution_checkpointing_incremental": incremental,
        "execution_checkpointing_data__inline__threshold": inline,
    }
    job = stage.start(many_keys(program), 2, hold_at=epoch, **settings)
    job.cancel()
    path = stage.newest_checkpoint(job)
    assert path is not None
    stage.run(many_keys(program), after, **from_path(path, **settings))
    assert Counter(program.results()) == MANY


def test_the_folder_of_a_job_is_no_checkpoint(stage: Stage, program: Program) -> None:
    job = stage.start(program.kept(of_int("sum")), hold_at=6)
    job.cancel()
    path = stage.newest_checkpoint(job)
    assert path is not None
    with pytest.raises(NoSuchSnapshot, match=f"complete checkpoints below it: {Path(path).name}"):
        stage.start(program.kept(of_int("sum")), **from_path(str(Path(path).parent)))


@pytest.mark.parametrize(
    ("retention", "left"),
    [("RETAIN_ON_CANCELLATION", 1), ("DELETE_ON_CANCELLATION", 0), ("NO_EXTERNALIZED_CHECKPOINTS", 0)],
)
def test_checkpoints_after_cancelling(stage: Stage, program: Program, retention: str, left: int) -> None:
    option = {"execution_checkpointing_externalized__checkpoint__retention": retention}
    stage.start(program.kept(of_int("sum")), hold_at=8, **option).cancel()
    assert len(list(stage.checkpoints.glob("*/chk-*"))) == left
    stage.run(program.kept(of_int("sum")), **option)
    assert len(list(stage.checkpoints.glob("*/chk-*"))) == left, "a job that has ended needs none"


@pytest.mark.parametrize("incremental", [True, False])
def test_no_empty_folders_are_left_behind(stage: Stage, program: Program, incremental: bool) -> None:
    """A folder may outlive its checkpoint, as long as later checkpoints build on a file in it."""
    options = {
        "execution_checkpointing_incremental": incremental,
        "execution_checkpointing_data__inline__threshold": "0 b",
    }
    job = stage.start(many_keys(program), 2, hold_at=45, **options).wait_until_held()
    folders = list(stage.checkpoints.glob("*/chk-*"))
    assert folders and all(any(folder.iterdir()) for folder in folders)
    job.finish()
    assert list(stage.checkpoints.glob("*/chk-*")) == []


# --- state backends ---
@pytest.mark.parametrize("backends", [("hashmap", "rocksdb"), ("rocksdb", "hashmap")], ids=" to ".join)
@pytest.mark.parametrize("after", [2, 3])
def test_the_state_backend_may_change(stage: Stage, tmp_path: Path, backends: tuple[str, str], after: int) -> None:
    stage.epoch_records = 40
    lines, stores = write_lines(tmp_path / "lines"), (f"{tmp_path} whole", f"{tmp_path} parts")
    stage.run(build_everything(stores[0], lines), 2)
    build = build_everything(stores[1], lines)
    path = stage.start(build, 2, hold_at=14, state_backend_type=backends[0]).stop(stage.savepoints)
    stage.run(build, after, **from_path(path, state_backend_type=backends[1]))
    assert seen(stores[1]) == seen(stores[0])


# --- a driver that died ---
def test_another_driver_goes_on_where_the_first_one_died(stage: Stage, program: Program) -> None:
    expected = Counter(map(repr, whole(stage, lambda p: p.kept(of_int("sum")))))
    build = program.kept(of_int("sum"))
    stage.start(build, hold_at=5, **OWN_JOB).lose_driver()
    stage.start(build, hold_at=4, **RECOVERED).lose_driver()
    job = stage.run(build, crashes={1: "after"}, **RECOVERED)
    assert Counter(map(repr, program.results())) == expected
    assert job.client.get_job_id().hex == JOB_ID


@pytest.mark.parametrize("inline", ["0 b", "1 mb"])
@pytest.mark.parametrize("parallelisms", [(2, 2, 2), (2, 3, 3), (3, 1, 2)])
def test_another_driver_builds_on_what_it_finds(
    stage: Stage, program: Program, inline: str, parallelisms: tuple[int, ...]
) -> None:
    option = {"execution_checkpointing_data__inline__threshold": inline}
    first, second, third = parallelisms
    stage.start(many_keys(program), first, hold_at=34, **OWN_JOB, **option).lose_driver()
    stage.start(many_keys(program), second, hold_at=6, **RECOVERED, **option).lose_driver()
    stage.run(many_keys(program), third, **RECOVERED, **option)
    assert Counter(program.results()) == MANY
    files = [path.name for path in (stage.checkpoints / JOB_ID).rglob("*") if path.is_file()]
    assert sorted(files) == ["00000003", "00000003.began", "00000003.over"], "what dead drivers left behind is gone"


def test_recovering_a_job_that_never_ran_starts_it(stage: Stage, program: Program) -> None:
    stage.run(program.kept(of_int("sum")), **RECOVERED)
    assert program.results() == whole(stage, lambda p: p.kept(of_int("sum")))


def test_recovering_a_job_without_a_checkpoint_starts_from_the_savepoint_it_names(
    stage: Stage, program: Program
) -> None:
    path = stopped(stage, program)
    build = program.kept(of_int("sum"))
    stage.start(build, hold_at=1, **from_path(path, **RECOVERED)).lose_driver()
    stage.start(build, hold_at=5, **from_path(path, **RECOVERED)).lose_driver()
    stage.run(build, **from_path(path, **RECOVERED))
    assert program.results() == whole(stage, lambda p: p.kept(of_int("sum")))


def test_recovering_a_job_that_has_ended_does_nothing(stage: Stage, program: Program) -> None:
    build = program.kept(of_int("sum"))
    stage.run(build, **OWN_JOB)
    before = program.results()
    job = stage.run(build, **RECOVERED)
    assert job.cluster.ran == 0 and program.results() == before
    assert job.client.get_job_status().result() is JobStatus.FINISHED


def test_a_job_of_the_same_id_that_is_not_recovered_starts_again(stage: Stage, program: Program) -> None:
    build = program.kept(of_int("sum"))
    stage.run(build, **OWN_JOB)
    stage.start(build, hold_at=5, **OWN_JOB).lose_driver()
    stage.run(build, **RECOVERED)
    assert program.results() == 2 * whole(stage, lambda p: p.kept(of_int("sum")))


def test_a_cancelled_job_with_a_retained_checkpoint_is_recovered(stage: Stage, program: Program) -> None:
    build = program.kept(of_int("sum"))
    stage.start(build, hold_at=5, **OWN_JOB).cancel()
    stage.run(build, **RECOVERED)
    assert program.results() == whole(stage, lambda p: p.kept(of_int("sum")))


def test_cancelling_a_recovered_job_keeps_the_checkpoint_it_came_from(stage: Stage, program: Program) -> None:
    """The job has not taken a checkpoint of its own yet."""
    build = program.kept(of_int("sum"))
    stage.start(build, hold_at=5, **OWN_JOB).lose_driver()
    stage.start(build, hold_at=0, **RECOVERED).cancel()
    stage.run(build, **RECOVERED)
    assert program.results() == whole(stage, lambda p: p.kept(of_int("sum")))


def test_a_checkpoint_that_is_not_claimed_stays_even_in_the_folder_of_the_job(stage: Stage, program: Program) -> None:
    build = program.kept(of_int("sum"))
    job = stage.start(build, hold_at=5, **OWN_JOB)
    job.cancel()
    path = stage.newest_checkpoint(job)
    assert path is not None
    stage.run(build, **from_path(path, **OWN_JOB))
    assert program.results() == whole(stage, lambda p: p.kept(of_int("sum")))
    assert read_snapshot(path).number


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({"execution_recover": "latest"}, "pipeline.job-id"),
        ({**RECOVERED, "execution_checkpointing_dir": None}, "execution.checkpointing.dir"),
    ],
)
def test_recovering_needs_to_know_which_job(stage: Stage, program: Program, options: Any, missing: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{missing} is not set"):
        stage.start(program.kept(of_int("sum")), **options)


# --- asking for savepoints ---
def test_a_savepoint_changes_nothing_for_the_job(stage: Stage, program: Program) -> None:
    job = stage.start(many_keys(program), 2, hold_at=20, crashes={24: "before", 30: "after"})
    path = job.savepoint(stage.savepoints)
    job.finish()
    assert job.restarts() == 2
    assert Counter(program.results()) == MANY
    assert read_snapshot(path).savepoint


@pytest.mark.parametrize("checkpointed", [True, False])
def test_a_sink_commits_what_it_prepared_for_a_savepoint(stage: Stage, program: Program, checkpointed: bool) -> None:
    """A job without checkpoints commits only at its end."""
    interval = {} if checkpointed else {"execution_checkpointing_interval": None}
    job = stage.start(program.kept(of_int("sum")), hold_at=4, **interval)
    job.savepoint(stage.savepoints)
    job.finish()
    assert program.results() == whole(stage, lambda p: p.kept(of_int("sum")))


@pytest.mark.parametrize("drain", [False, True])
def test_a_job_without_checkpoints_can_be_stopped(stage: Stage, program: Program, drain: bool) -> None:
    build, none = program.kept(of_int("sum")), {"execution_checkpointing_interval": None}
    path = stage.start(build, 2, hold_at=4, **none).stop(stage.savepoints, drain=drain)
    assert len(program.results()) == 40
    stage.run(build, 3, **from_path(path, **none))
    assert sorted(program.results()) == sorted(whole(stage, lambda p: p.kept(of_int("sum"))))


def test_the_default_directory_of_savepoints(stage: Stage, program: Program) -> None:
    option = {"execution_checkpointing_savepoint__dir": str(stage.savepoints)}
    job = stage.start(program.kept(of_int("sum")), hold_at=4, **option)
    path = job.asked(False, None).result(60)
    assert Path(urlparse(path).path).parent == stage.savepoints


def test_a_savepoint_needs_a_directory(stage: Stage, program: Program) -> None:
    job = stage.start(program.kept(of_int("sum")), hold_at=4)
    for drain in (None, False):
        with pytest.raises(ConfigurationError, match="a savepoint needs a directory"):
            job.asked(drain, None).result(60)
    job.finish()
    assert len(program.results()) == len(NUMBERS)


@pytest.mark.parametrize("drain", [None, False, True], ids=["going on", "stopping", "draining"])
@pytest.mark.parametrize("large", [False, True])
def test_a_savepoint_that_cannot_be_written_does_no_harm(
    stage: Stage, program: Program, tmp_path: Path, drain: bool | None, large: bool
) -> None:
    (tmp_path / "file").write_text("this is not a folder")
    job = stage.start(many_keys(program), 2, hold_at=35 if large else 4)
    with pytest.raises(CheckpointFailed, match="the savepoint failed"):
        job.asked(drain, tmp_path / "file").result(60)
    job.finish()
    assert Counter(program.results()) == MANY
    assert job.restarts() == (drain is True), "only a job that was drained has to go back"


def test_no_savepoint_of_a_job_that_is_over(stage: Stage, program: Program) -> None:
    job = stage.run(program.kept(of_int("sum")))
    for future in (
        job.client.trigger_savepoint(str(stage.savepoints)),
        job.client.stop_with_savepoint(False, str(stage.savepoints)),
    ):
        with pytest.raises(CheckpointFailed, match="is FINISHED"):
            future.result(60)


def test_of_two_who_stop_a_job_one_is_told_no(stage: Stage, program: Program) -> None:
    job = stage.start(program.kept(of_int("sum")), hold_at=4).wait_until_held()
    second = job.client.stop_with_savepoint(False, str(stage.savepoints / "second"))
    job.until(lambda: job.waiting_requests() == 1)
    first = job.client.stop_with_savepoint(True, str(stage.savepoints / "first"))
    job.until(lambda: job.waiting_requests() == 2)
    job.go_on()
    stage.run(program.kept(of_int("sum")), **from_path(second.result(60)))
    with pytest.raises(CheckpointFailed, match="no savepoint was taken: the job has ended"):
        first.result(60)
    assert program.results() == whole(stage, lambda p: p.kept(of_int("sum")))


def test_a_savepoint_asked_for_in_the_very_last_moment_is_answered(
    stage: Stage, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the job deletes its checkpoints it is still RUNNING for its clients."""
    asked, carry_out = [], Archive.carry_out

    def carried_out(self: Archive, order: StorageOrder) -> None:
        if isinstance(order, Tidy):
            asked.append(job.client.trigger_savepoint(str(stage.savepoints)))
            job.until(lambda: job.waiting_requests() or asked[0].done())
        carry_out(self, order)

    job = stage.start(program.kept(of_int("sum")), hold_at=0)
    monkeypatch.setattr(Archive, "carry_out", carried_out)
    job.finish()
    with pytest.raises(CheckpointFailed):
        asked[0].result(60)


class RestartClock(ManualClock):
    """Stands still while a job waits for its restart."""

    def __init__(self) -> None:
        super().__init__(now=1_000_000, tick=4)
        self.restarting = threading.Event()
        self.go_on = threading.Event()

    def rest(self, millis: int, woken: threading.Event) -> None:
        if millis is not None and 700 < millis <= 777:
            self.restarting.set()
            assert self.go_on.wait(60)
        super().rest(millis, woken)


@pytest.mark.parametrize("stop", [True, False])
def test_a_savepoint_asked_for_during_a_restart_is_taken_after_it(stage: Stage, program: Program, stop: bool) -> None:
    stage.clock = clock = RestartClock()
    delay = {"restart__strategy_fixed__delay_delay": "777 ms"}
    job = stage.start(program.kept(of_int("sum")), crashes={5: "after"}, **delay)
    assert clock.restarting.wait(60)
    assert job.client.get_job_status().result() is JobStatus.RESTARTING
    folder = str(stage.savepoints)
    future = job.client.stop_with_savepoint(False, folder) if stop else job.client.trigger_savepoint(folder)
    job.until(job.waiting_requests)
    clock.go_on.set()
    path = future.result(60)
    job.finish()
    stage.run(program.kept(of_int("sum")), **from_path(path))
    expected = Counter(map(repr, whole(stage, lambda p: p.kept(of_int("sum")))))
    got = Counter(map(repr, program.results()))
    assert (got == expected) if stop else (set(got) == set(expected))


def test_a_savepoint_asked_for_before_the_job_fails_for_good_is_answered(stage: Stage, program: Program) -> None:
    stage.clock = clock = RestartClock()
    options = {"restart__strategy_fixed__delay_delay": "777 ms", "restart__strategy_fixed__delay_attempts": 1}
    job = stage.start(program.kept(of_int("sum")), crashes={5: "after", 6: "before"}, **options)
    assert clock.restarting.wait(60)
    future = job.client.trigger_savepoint(str(stage.savepoints))
    job.until(job.waiting_requests)
    clock.go_on.set()
    with pytest.raises(CheckpointFailed, match=r"a slot was lost in epoch 6|the job is restarting"):
        future.result(60)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("epoch", [5, 6, 7])
def test_a_crash_while_stopping_gives_no_result_twice(stage: Stage, program: Program, epoch: int, when: str) -> None:
    """Epoch 5 takes the savepoint, epoch 6 tells the sink of it. Whoever gets a path may start from it."""
    job = stage.start(program.kept(of_int("sum")), hold_at=4, crashes={epoch: when})
    path = job.asked(False, stage.savepoints)
    if path.exception(60) is None:
        stage.run(program.kept(of_int("sum")), **from_path(path.result()))
    else:
        job.finish()
    assert program.results() == whole(stage, lambda p: p.kept(of_int("sum")))


# --- checkpoints that fail ---
class FailsSometimes(MapFunction, ListCheckpointed[int]):
    """Some of its snapshots fail."""

    def map(self, value: Any) -> Any:
        return value

    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[int]:
        if checkpoint_id % 5 in (1, 3, 4):
            raise ValueError("not now")
        return []

    def restore_state(self, state: list[int]) -> None:
        pass


@pytest.mark.parametrize("backend", [HashMapStateBackend, EmbeddedRocksDBStateBackend])
def test_checkpoints_that_failed_leave_no_gap(stage: Stage, program: Program, backend: Any) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        many_keys(program)(env)
        env.set_state_backend(backend())
        program.out(env.from_sequence(1, 9).uid("few").map(FailsSometimes()).uid("fails"), "few")

    options = {"execution_checkpointing_tolerable__failed__checkpoints": 2}
    job = stage.run(build, 2, crashes={21: "after", 36: "before", 45: "after"}, **options)
    assert job.restarts() == 3
    assert Counter(program.results()) == MANY


class AlwaysFails(FailsSometimes):
    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[int]:
        raise ValueError("never")


def test_a_savepoint_that_fails_in_one_slot_leaves_no_files_of_others(stage: Stage, program: Program) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        many_keys(program)(env)
        few = env.from_collection(range(9)).uid("few").map(AlwaysFails()).uid("fails").set_parallelism(1)
        program.out(few, "few")

    job = stage.start(build, 2, hold_at=70, execution_checkpointing_interval=None)
    with pytest.raises(CheckpointFailed, match="ValueError: never"):
        job.savepoint(stage.savepoints)
    job.finish()
    assert [path for path in stage.savepoints.rglob("*") if path.is_file()] == []


# --- keys, sources and modes that are easily forgotten ---
@dataclass(frozen=True)
class Sensor:
    """A key that has no order."""

    name: str


class Once(KeyedProcessFunction):
    """All keys have a timer at the same time."""

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(10_000)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key()


@pytest.mark.parametrize(
    "keys",
    [[f"s{n}" for n in range(40)], [Sensor(f"s{n}") for n in range(40)], [None, 2, *"abcdef", (1, 2), b"x", 2.5]],
    ids=["strings", "dataclasses", "of many types"],
)
def test_timers_of_keys_that_have_no_order(stage: Stage, program: Program, keys: list[Any]) -> None:
    def build(env: StreamExecutionEnvironment) -> None:
        events = env.from_collection([(key, n, n) for n, key in enumerate([*keys, *keys])]).uid("events")
        program.out(punctuated(events, "time").key_by(key_of).process(Once()).uid("once"))

    path = stage.start(build, 4, hold_at=len(keys) // 8).stop(stage.savepoints)
    stage.run(build, 1, **from_path(path))
    assert Counter(program.results()) == Counter(keys)


def stamped_by(strategy: WatermarkStrategy, program: Program) -> Build:
    late_by_100 = [("k", ts, n) for n, ts in enumerate([*range(0, 400, 10), 300, *range(400, 800, 10), 700, 800])]

    def build(env: StreamExecutionEnvironment) -> None:
        events = env.from_collection(late_by_100).uid("events")
        stamped = events.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(SecondField())).uid("time")
        windows = stamped.key_by(key_of).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        program.out(windows.process(Sizes()).uid("sizes"))

    return build


@pytest.mark.parametrize("after", [1, 2])
def test_the_program_decides_about_watermarks_not_the_savepoint(stage: Stage, program: Program, after: int) -> None:
    """A program that now allows for disorder gets it, whatever wrote the savepoint."""
    strict = WatermarkStrategy.for_monotonous_timestamps()
    patient = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(200))
    path = stage.start(stamped_by(strict, program), hold_at=5).stop(stage.savepoints)
    stage.run(stamped_by(patient, program), after, **from_path(path))
    assert ("k", (700, [71, 81])) in [(key, (start, sorted(ns))) for key, (start, ns) in program.results()]


class Counting(WatermarkGenerator):
    """Has what slots cannot send: a lock, and a metric of the slot it is in."""

    def __init__(self, context: Any, locked: bool) -> None:
        self.seen = context.get_metric_group().counter("seen")
        self.lock = threading.Lock() if locked else None

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        self.seen.inc()
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output: Any) -> None:
        pass


@pytest.mark.parametrize("locked", [False, True], ids=["with a metric", "with a lock"])
def test_a_generator_is_made_by_its_supplier(stage: Stage, program: Program, locked: bool) -> None:
    """A generator is not state that a function declared: it need not be picklable, and its metrics are the slot's."""
    strategy = WatermarkStrategy.for_generator(lambda context: Counting(context, locked))

    def build(env: StreamExecutionEnvironment) -> None:
        events = env.from_collection(EVENTS).uid("events")
        stamped = events.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(SecondField()))
        program.out(stamped.uid("time"))

    job = stage.run(build, crashes={6: "before"})
    assert program.results() == EVENTS
    assert job.client.get_accumulators().result()["time.seen"] > 40, "since the restart"


class Steps:
    """What test and source function tell each other."""

    said_idle = threading.Event()
    may_go_on = threading.Event()


class Sleeper(SourceFunction, ListCheckpointed[str]):
    """One record, then nothing for a while, then more."""

    slept = False
    running = True

    def run(self, ctx: Any) -> None:
        if not self.slept:
            with ctx.get_checkpoint_lock():
                ctx.collect_with_timestamp("first", 10)
                ctx.emit_watermark(Watermark(10))
                ctx.mark_as_temporarily_idle()
                self.slept = True
            Steps.said_idle.set()
        while self.running and not Steps.may_go_on.wait(0.005):
            pass
        if self.running:
            with ctx.get_checkpoint_lock():
                ctx.collect_with_timestamp("second", 20)
                ctx.emit_watermark(Watermark(20))
                ctx.collect_with_timestamp("third", 30)

    def cancel(self) -> None:
        self.running = False

    def snapshot_state(self, checkpoint_id: int, timestamp: int) -> list[str]:
        return ["slept"] * self.slept

    def restore_state(self, state: list[str]) -> None:
        self.slept = bool(state)


class OwnTime(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


class EventTimeSeen(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value, ctx.timer_service().current_watermark()


@pytest.mark.parametrize("crashes", [{}, {9: "before"}], ids=["undisturbed", "after a crash"])
def test_a_source_function_that_was_idle_wakes_up(stage: Stage, program: Program, crashes: dict[int, str]) -> None:
    Steps.said_idle.clear()
    Steps.may_go_on.clear()

    def build(env: StreamExecutionEnvironment) -> None:
        program.out(env.add_source(Sleeper()).uid("sleeper").process(EventTimeSeen()).uid("seen"))

    job = stage.start(build, hold_at=2, crashes=crashes).wait_until_held()
    assert Steps.said_idle.wait(60)
    job.go_on()
    job.until(lambda: job.cluster.ran > 12)
    Steps.may_go_on.set()
    job.finish()
    assert [watermark for _, watermark in program.results()][1:] == [10, 20]


def test_a_source_that_was_idle_stays_idle(stage: Stage, program: Program) -> None:
    """Event time goes on without the idle source, also in the job that starts from the savepoint."""
    quiet = [at("q", 1), watermark(1), idle(), *[pause()] * 14, at("q", 90), watermark(90)]
    lively = [at("a", 5), *[pause()] * 6, at("b", 50), watermark(50), pause(), at("c", 60), *[pause()] * 9]

    def build(env: StreamExecutionEnvironment) -> None:
        both = scripted(env, *quiet).uid("quiet").union(scripted(env, *lively).uid("lively"))
        program.out(both.process(EventTimeSeen()).uid("seen"))

    expected = Program(f"{program.store} whole")
    program.store, expected.store = expected.store, program.store
    stage.run(build)
    program.store, expected.store = expected.store, program.store
    path = stage.start(build, hold_at=2).stop(stage.savepoints)
    stage.run(build, **from_path(path))
    assert program.results() == expected.results()


class InTwoParts(Partitions):
    """Emits half of each partition at once, faster than the job reads, and the other half when it may."""

    def run(self, ctx: Any) -> None:
        for end in (3, 6):
            for name in self.offsets:
                self.emit(ctx, name, end)
            while self.running and not Steps.may_go_on.wait(0.005):
                pass

    def emit(self, ctx: Any, name: str, end: int) -> None:
        with ctx.get_checkpoint_lock():
            for offset in range(self.offsets[name], end):
                ctx.collect(("partitions", name, PARTITIONS[name][offset]))
                self.offsets[name] = offset + 1


@pytest.mark.parametrize("parallelisms", [(1, 3), (3, 2), (2, 5)])
def test_what_waits_in_a_source_function_is_not_overtaken(
    stage: Stage, program: Program, parallelisms: tuple[int, int]
) -> None:
    """The records of one partition come in order, as they do in Flink, whoever reads it now."""

    Steps.may_go_on.clear()

    def build(env: StreamExecutionEnvironment) -> None:
        keyed = env.add_source(InTwoParts()).uid("partitions").key_by(lambda r: r[1])
        program.out(keyed.map_with_state(lambda r, s: ((r[1], r[2]), s)).uid("map"))

    path = stage.start(build, parallelisms[0], hold_at=0).stop(stage.savepoints)
    Steps.may_go_on.set()
    stage.run(build, parallelisms[1], **from_path(path))
    assert rows_by_key(program.results()) == PARTITIONS


def in_batch_mode(env: StreamExecutionEnvironment) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)


def test_a_batch_job_is_not_stopped_half_way(stage: Stage, program: Program) -> None:
    """A BATCH job keeps its input outside of state, so a savepoint is refused or holds everything."""
    build = program.kept(of_int("sum"))
    expected = Program(f"{program.store} whole")
    stage.run(expected.kept(of_int("sum")), configure=in_batch_mode)
    job = stage.start(build, hold_at=4, configure=in_batch_mode)
    stopped = job.asked(False, stage.savepoints)
    if isinstance(stopped.exception(60), PenstockError):
        job.finish()
    else:
        stage.run(build, configure=in_batch_mode, **from_path(stopped.result()))
    assert sorted(program.results()) == sorted(expected.results())


@pytest.mark.parametrize("keyed", [True, False])
def test_a_batch_job_that_starts_again_gives_no_result_twice(stage: Stage, keyed: bool) -> None:
    with stage.steered(SteeredCluster(crashes={5: "before", 12: "after"})) as cluster:
        env = stage.environment()
        in_batch_mode(env)
        numbers = env.from_collection(NUMBERS)
        stream = numbers.key_by(lambda n: n % 3).reduce(max) if keyed else numbers.map(lambda n: n)
        results = list(stream.execute_and_collect())
    assert cluster.ran > 13
    assert sorted(results) == ([94, 95, 96] if keyed else list(NUMBERS))


def test_a_source_that_the_driver_feeds_loses_nothing_while_others_catch_up(stage: Stage, program: Program) -> None:
    """What was assigned to a source that is paused by watermark alignment is part of its position already."""
    slow, fast = range(400), range(0, 4000, 10)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(OwnTime())
    aligned = strategy.with_watermark_alignment("group", Duration.of_millis(20))

    def build(env: StreamExecutionEnvironment) -> None:
        fed = env._source("Fed Source", FedSource(lambda: IteratorEnumerator(iter(fast))), None).uid("fed")
        program.out(fed.assign_timestamps_and_watermarks(aligned).uid("fed time"))
        other = env.from_collection(slow).uid("slow").assign_timestamps_and_watermarks(aligned).uid("slow time")
        program.out(other, "slow")

    job = stage.start(build)
    finished = job.client.get_job_execution_result()
    try:
        finished.result(60)
    except TimeoutError:
        job.client.cancel().result()
    assert program.results() == list(fast) and program.results("slow") == list(slow)
