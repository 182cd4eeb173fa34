"""State that expires goes away without being asked for, is left out of snapshots, and ages on across a restore."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base import pickling
from penstock.common import Time
from penstock.datastream.functions import KeyedProcessFunction
from penstock.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from penstock.engine.checkpoint.store import read_snapshot
from penstock.engine.state.backend import KeyedStateBackend
from penstock.engine.state.snapshot_file import Kind, SnapshotFile
from penstock.errors import JobFailed, StateMigrationException
from penstock.testing import ManualClock, OperatorHarness, pause, scripted
from tests.keyed_states import state_of

TTL = 1000
CLOCKS: list = []
SEEN: list = []
RESULTS: list = []
FAILURES: list = []


@pytest.fixture(autouse=True)
def _fresh():
    for shared in (CLOCKS, SEEN, RESULTS, FAILURES):
        shared.clear()


def config(configure=lambda builder: builder, ttl=TTL):
    return configure(StateTtlConfig.new_builder(Time.milliseconds(ttl))).build()


def in_background(size):
    return lambda builder: builder.cleanup_incrementally(size, False)


def no_cleanup(builder):
    return builder.disable_cleanup_in_background()


def in_snapshots(builder):
    return builder.disable_cleanup_in_background().cleanup_full_snapshot()


DESCRIPTORS = {
    "value": lambda: ValueStateDescriptor("s"),
    "list": lambda: ListStateDescriptor("s"),
    "map": lambda: MapStateDescriptor("s"),
    "reducing": lambda: ReducingStateDescriptor("s", max),
}


class Keeps(KeyedProcessFunction):
    """Records are (key, what to do, argument); 'read' emits what is in the state."""

    def __init__(self, kind="value", ttl=None):
        self.kind = kind
        self.ttl = ttl

    def open(self, runtime_context):
        descriptor = DESCRIPTORS[self.kind]()
        if self.ttl is not None:
            descriptor.enable_time_to_live(self.ttl)
        self.state = state_of(runtime_context, descriptor)

    def process_element(self, value, ctx):
        key, action, argument = value
        SEEN.append(value)
        if action == "read":
            yield key, self.read()
        elif action == "sleep":
            CLOCKS[-1].advance(argument)
        elif action == "fail":
            if FAILURES:
                raise FAILURES.pop()
        else:
            self.write(argument)

    def write(self, argument):
        match self.kind:
            case "value":
                self.state.update(argument)
            case "map":
                self.state.put(argument, f"of {argument}")
            case _:
                self.state.add(argument)

    def read(self):
        match self.kind:
            case "value":
                return self.state.value()
            case "map":
                return sorted(self.state.items())
            case "list":
                return list(self.state.get())
            case _:
                return self.state.get()


def harness(kind="value", ttl=None):
    return OperatorHarness(lambda stream: stream.key_by(0).process(Keeps(kind, ttl)))


def held(harness):
    """The stored values of all keys."""
    (operator,) = [o for o in harness._operators() if getattr(o, "keyed", None) is not None]
    return dict(operator.keyed.tables["s"].entries)


class TestCleanupInTheBackground:
    @pytest.mark.parametrize("kind", DESCRIPTORS)
    def test_entries_nobody_asks_for_go(self, kind):
        with harness(kind, config()) as operator:
            for key in range(7):
                operator.push((key, "write", 1))
            assert operator.state_entries() == 7
            for step in range(6):
                operator.advance_processing_time(TTL + 100 + step)
            assert operator.state_entries() == 0 and operator.values() == []

    def test_not_a_moment_too_early(self):
        with harness("value", config()) as operator:
            operator.push((1, "write", "x"))
            for now in (1, 500, TTL - 1):
                operator.advance_processing_time(now)
                assert operator.state_entries() == 1
            operator.advance_processing_time(TTL)
            operator.advance_processing_time(TTL)
            assert operator.state_entries() == 0

    @pytest.mark.parametrize("size", [1, 3, 10])
    def test_so_many_entries_at_a_time(self, size):
        """The rest of the epoch does not wait for a sweep over everything."""
        with harness("value", config(in_background(size))) as operator:
            operator.push_all([(key, "write", 1) for key in range(30)])
            left = [30]
            for now in range(TTL, TTL + 40):
                operator.advance_processing_time(now)
                left.append(operator.state_entries())
            removed = [before - after for before, after in pairwise(left)]
            assert max(removed) <= size and left[-1] == 0

    def test_more_use_sweeps_more(self):
        with harness("value", config(in_background(2))) as operator:
            operator.push_all([(key, "write", 1) for key in range(100)])
            operator.advance_processing_time(TTL)
            before = operator.state_entries()
            operator.push_all([("other", "write", 1)] * 20)
            assert before - operator.state_entries() >= 20

    def test_it_can_be_switched_off(self):
        with harness("value", config(no_cleanup)) as operator:
            operator.push((1, "write", "x"))
            for step in range(20):
                operator.advance_processing_time(10 * TTL + step)
            assert operator.state_entries() == 1, "it stays until someone reads it"
            operator.push((1, "read", None))
            assert operator.values() == [(1, None)] and operator.state_entries() == 0

    def test_elements_of_a_list_go_one_by_one(self):
        with harness("list", config()) as operator:
            operator.push((1, "write", "old"))
            operator.advance_processing_time(600)
            operator.push((1, "write", "young"))
            for step in range(4):
                operator.advance_processing_time(TTL + step)
            assert held(operator) == {1: [("young", 600)]}
            operator.advance_processing_time(1600)
            operator.advance_processing_time(1601)
            assert held(operator) == {}

    def test_entries_of_a_map_go_one_by_one(self):
        with harness("map", config()) as operator:
            operator.push((1, "write", "old"))
            operator.advance_processing_time(600)
            operator.push((1, "write", "young"))
            for step in range(4):
                operator.advance_processing_time(TTL + step)
            assert held(operator) == {1: {"young": ("of young", 600)}}

    def test_what_was_renewed_stays(self):
        with harness("value", config()) as operator:
            operator.push((1, "write", "x"))
            operator.push((2, "write", "y"))
            operator.advance_processing_time(700)
            operator.push((1, "write", "x again"))
            for step in range(4):
                operator.advance_processing_time(TTL + step)
            assert set(held(operator)) == {1}

    def test_reading_renews_if_asked(self):
        with harness("value", config(lambda b: b.update_ttl_on_read_and_write())) as operator:
            operator.push((1, "write", "x"))
            for now in range(0, 5 * TTL, 900):
                operator.advance_processing_time(now)
                operator.push((1, "read", None))
            assert operator.values() == [(1, "x")] * 6

    def test_an_expired_one_may_be_seen_until_it_is_gone(self):
        with harness("value", config(lambda b: b.return_expired_if_not_cleaned_up())) as operator:
            operator.push((1, "write", "x"))
            for step in range(3):
                operator.advance_processing_time(TTL + step)
            operator.push((1, "read", None))
            assert operator.values() == [(1, None)], "the sweep has removed it"

    @settings(max_examples=60)
    @given(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 400)), max_size=25),
        st.integers(1, 4),
        st.sampled_from(["value", "list", "map"]),
    )
    def test_only_what_has_expired_goes_and_all_of_it(self, writes, size, kind):
        """Against a plain account of what was written when."""
        clock = [0]
        backend = KeyedStateBackend(lambda: clock[0])
        descriptor = DESCRIPTORS[kind]()
        descriptor.enable_time_to_live(config(in_background(size)))
        state, model = backend.state(descriptor), {}
        for number, (key, later) in enumerate(writes):
            clock[0] += later
            backend.scope.key = key
            keeper = Keeps(kind)
            keeper.state = state
            keeper.write(number)
            model.setdefault(key, {} if kind != "value" else None)
            model[key] = {number: clock[0]} if kind == "value" else {**model[key], number: clock[0]}
            backend.end_epoch(False)
        table = backend.tables["s"]
        alive = {k: {n for n, at in held.items() if clock[0] - at < TTL} for k, held in model.items()}
        alive = {key: numbers for key, numbers in alive.items() if numbers}
        assert set(alive) <= set(table.entries), "something alive was removed"
        for _ in range(4 + len(model)):
            backend.end_epoch(False)
        assert set(table.entries) == set(alive)
        if kind != "value":
            for key, numbers in alive.items():
                stored = table.entries[key]
                assert {n for n, *_ in stored} == numbers if kind == "list" else set(stored) == numbers


# --- in jobs ---
class Frozen(ManualClock):
    """A clock that only the script's 'sleep' moves."""

    def rest(self, millis, woken):
        woken.wait(0.001)


def take(value):
    RESULTS.append(value)


@pytest.fixture
def begun(start, until):
    """Starts a job that plays a script, at some time, maybe from a savepoint; gives its client when it has."""

    def begun(script, kind="value", ttl=None, now=0, path=None, skipped=0, **options):
        CLOCKS.append(Frozen(now))
        SEEN.clear()
        RESULTS.clear()

        def build(env):
            records = scripted(env, *script, stay=True).uid("source").key_by(lambda record: record[0])
            records.process(Keeps(kind, ttl)).uid("keeps").name("Keeps").add_sink(take)

        names = {"execution.checkpointing.interval": None, "execution.state-recovery.path": path, **options}
        client = start(build, names, clock=CLOCKS[-1])
        records = [step for step in script if step != pause()]
        until(lambda: len(SEEN) >= len(records) - skipped or client._job._ended.is_set())
        return client

    return begun


@pytest.fixture
def saved(begun, tmp_path):
    """Plays a script, and gives the path of a savepoint behind it."""

    def saved(script, kind="value", ttl=None):
        return begun(script, kind, ttl).stop_with_savepoint(False, str(tmp_path)).result(60)

    return saved


@pytest.fixture
def resumed(begun):
    """Goes on from the savepoint behind one script with another, at some time; gives what was read."""

    def resumed(path, before, after, now, kind="value", ttl=None):
        skipped = len([step for step in before if step != pause()])
        client = begun([*before, *after], kind, ttl, now, path, skipped)
        client.cancel().result(60)
        return list(RESULTS)

    return resumed


def entries_of(metadata):
    """The entries of the keyed state as they are in the files of a snapshot."""
    entries = {}
    for slot in metadata.slots:
        for ref in slot.files:
            with SnapshotFile(ref) as file:
                for name in [name for name in file.sections if name.kind is Kind.KEYED]:
                    for page in file.pages(name):
                        addresses, values, _ = pickling.loads(page)
                        entries.update(zip(addresses, values, strict=True))
    return entries


LATER = [(0, "sleep", 900), pause()]
MUCH_LATER = [(0, "sleep", 200), pause(), (0, "sleep", 0)]


class TestSnapshots:
    SCRIPT = [(1, "write", "old"), (2, "write", "soon new"), *LATER, (2, "write", "new"), *MUCH_LATER]

    def test_what_has_expired_is_not_in_a_savepoint(self, saved):
        path = saved(self.SCRIPT, ttl=config(in_snapshots))
        assert entries_of(read_snapshot(path)) == {2: ("new", 900)}

    def test_unless_nobody_asked_for_that(self, saved):
        path = saved(self.SCRIPT, ttl=config(no_cleanup))
        assert entries_of(read_snapshot(path)) == {1: ("old", 0), 2: ("new", 900)}

    @pytest.mark.parametrize(
        ("kind", "left"),
        [("list", {1: [("b", 900)]}), ("map", {1: {"b": ("of b", 900)}}), ("reducing", {1: ("b", 900)})],
    )
    def test_elements_and_entries_one_by_one(self, saved, kind, left):
        script = [(1, "write", "a"), (3, "write", "c"), *LATER, (1, "write", "b"), *MUCH_LATER]
        assert entries_of(read_snapshot(saved(script, kind, config(in_snapshots)))) == left

    def test_the_live_state_is_untouched(self, begun, tmp_path, until):
        """A savepoint that leaves something out changes nothing for the job that goes on."""
        ttl = config(lambda builder: in_snapshots(builder).return_expired_if_not_cleaned_up())
        client = begun(self.SCRIPT, ttl=ttl)
        client.trigger_savepoint(str(tmp_path)).result(60)
        second = client.stop_with_savepoint(False, str(tmp_path)).result(60)
        assert entries_of(read_snapshot(second)) == {2: ("new", 900)}

    def test_full_checkpoints_leave_it_out_too(self, run):
        CLOCKS.append(Frozen())
        options = {"execution.checkpointing.incremental": "false", "execution.checkpointing.interval": "1 h"}
        ttl = config(in_snapshots)

        def build(env):
            return scripted(env, *self.SCRIPT).key_by(lambda record: record[0]).process(Keeps("value", ttl))

        last = run(build, options, clock=CLOCKS[-1]).coordinator.kept[-1]
        assert entries_of(last) == {2: ("new", 900)}


class TestRestored:
    BEFORE = [(1, "write", "x"), (0, "sleep", 600), pause(), (2, "write", "y"), pause()]
    READ = [(1, "read", None), (2, "read", None)]

    @pytest.mark.parametrize(
        ("now", "found"),
        [(600, ["x", "y"]), (999, ["x", "y"]), (1000, [None, "y"]), (1599, [None, "y"]), (1600, [None, None])],
    )
    def test_age_counts_on_from_before(self, saved, resumed, now, found):
        path = saved(self.BEFORE, ttl=config(no_cleanup))
        assert resumed(path, self.BEFORE, self.READ, now, ttl=config(no_cleanup)) == list(
            zip([1, 2], found, strict=True)
        )

    def test_what_nobody_asks_for_is_swept_out_after_a_restore(self, saved, begun, tmp_path):
        path = saved(self.BEFORE, ttl=config())
        client = begun([*self.BEFORE, *[pause()] * 5, (3, "write", "z")], ttl=config(), now=5000, path=path, skipped=3)
        later = client.stop_with_savepoint(False, str(tmp_path)).result(60)
        assert entries_of(read_snapshot(later)) == {3: ("z", 5000)}

    @pytest.mark.parametrize(("millis", "found"), [(300, None), (5000, "x")])
    def test_a_changed_length_counts_at_once(self, saved, resumed, millis, found):
        path = saved(self.BEFORE, ttl=config(no_cleanup))
        read = [(1, "read", None)]
        assert resumed(path, self.BEFORE, read, 900, ttl=config(no_cleanup, millis)) == [(1, found)]

    @pytest.mark.parametrize(("delay", "found"), [("500 ms", "x"), ("5 s", None)])
    def test_the_wait_before_a_restart_makes_it_older(self, run, restarts, delay, found):
        script = [(1, "write", "x"), pause(), pause(), (2, "fail", None), pause(), (1, "read", None)]
        FAILURES.append(ValueError("boom"))

        def build(env):
            return scripted(env, *script).key_by(lambda record: record[0]).process(Keeps("value", config()))

        assert run(build, restarts(1, delay)).results == [(1, found)] and not FAILURES

    @pytest.mark.parametrize(("before", "after"), [(None, config()), (config(), None)], ids=["added", "taken away"])
    def test_a_time_to_live_cannot_come_or_go(self, saved, begun, restarts, before, after):
        path = saved([(1, "write", "x")], ttl=before)
        script = [(1, "write", "x"), (1, "read", None)]
        client = begun(script, ttl=after, path=path, **restarts(5, "1 ms"))
        with pytest.raises(StateMigrationException, match=r"(?s)Keeps \(uid keeps.*'s'.*(TTL|time to live)") as raised:
            client.get_job_execution_result().result(60)
        assert isinstance(raised.value, JobFailed)
        assert len(client._job.view.failures) == 1, "another try would not help"
