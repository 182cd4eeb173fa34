"""State of a subtask: every kind of function keeps it, and it is given out again by Flink's rules."""

import threading
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.common import Time, Types
from penstock.datastream.functions import (
    BroadcastProcessFunction,
    CheckpointedFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ListCheckpointed,
    MapFunction,
    ProcessFunction,
    SinkFunction,
    SourceFunction,
)
from penstock.datastream.state import ListStateDescriptor, MapStateDescriptor, StateTtlConfig, ValueStateDescriptor
from penstock.engine.snapshots.restore import split_evenly
from penstock.errors import CheckpointFailed, JobFailed, ProgramError, StateMigrationException
from penstock.testing import pause, scripted

LIVES: list = []
"""One for each time that a function was given its state: (subtask, restored?, checkpoint, what was in the state)."""
FINAL: dict = {}
"""By subtask: what the function knew when it was closed."""
FAILURES: list = []
"""Values that still have to fail, once each."""
ORDER: list = []


@pytest.fixture(autouse=True)
def _fresh():
    LIVES.clear()
    FINAL.clear()
    FAILURES.clear()
    ORDER.clear()


class Remembers(CheckpointedFunction):
    """Keeps the values that it has seen in operator state."""

    def initialize_state(self, context):
        ORDER.append("initialize")
        self.state = context.get_operator_state_store().get_list_state(ListStateDescriptor("seen"))
        self.seen = list(self.state.get())
        LIVES.append((context.is_restored(), context.get_restored_checkpoint_id(), list(self.seen)))

    def snapshot_state(self, context):
        assert context.get_checkpoint_id() >= 1 and context.get_checkpoint_timestamp() >= 0
        self.state.update(self.seen)

    def open(self, runtime_context):
        ORDER.append("open")
        self.subtask = runtime_context.get_index_of_this_subtask()

    def close(self):
        FINAL[self.subtask] = self.seen

    def note(self, value):
        if value in FAILURES:
            FAILURES.remove(value)
            raise ValueError("boom")
        self.seen.append(value)
        return value


class RememberingMap(Remembers, MapFunction):
    def map(self, value):
        return self.note(value)


class RememberingFlatMap(Remembers, FlatMapFunction):
    def flat_map(self, value):
        yield self.note(value)


class RememberingFilter(Remembers, FilterFunction):
    def filter(self, value):
        self.note(value)
        return True


class RememberingProcess(Remembers, ProcessFunction):
    def process_element(self, value, ctx):
        yield self.note(value)


class RememberingKeyed(Remembers, KeyedProcessFunction):
    def process_element(self, value, ctx):
        yield self.note(value)


class RememberingCoProcess(Remembers, CoProcessFunction):
    def process_element1(self, value, ctx):
        yield self.note(value)

    def process_element2(self, value, ctx):
        yield self.note(value)


class RememberingKeyedCo(Remembers, KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        yield self.note(value)

    def process_element2(self, value, ctx):
        yield self.note(value)


class RememberingCoMap(Remembers, CoMapFunction):
    def map1(self, value):
        return self.note(value)

    map2 = map1


class RememberingCoFlatMap(Remembers, CoFlatMapFunction):
    def flat_map1(self, value):
        yield self.note(value)

    flat_map2 = flat_map1


class RememberingBroadcast(Remembers, BroadcastProcessFunction):
    def process_element(self, value, ctx):
        yield self.note(value)

    def process_broadcast_element(self, value, ctx):
        self.note(value)


class RememberingSink(Remembers, SinkFunction):
    def invoke(self, value, context=None):
        self.note(value)


SCRIPT = (1, pause(), 2, pause(), 3, pause(), 4)
NOTHING = MapStateDescriptor("nothing")


def connected(env, stream):
    return stream.connect(scripted(env, pause(), pause(), pause()))


KINDS = {
    "map": lambda env, s: s.map(RememberingMap()),
    "flat_map": lambda env, s: s.flat_map(RememberingFlatMap()),
    "filter": lambda env, s: s.filter(RememberingFilter()),
    "process": lambda env, s: s.process(RememberingProcess()),
    "keyed map": lambda env, s: s.key_by(lambda v: 0).map(RememberingMap()),
    "keyed process": lambda env, s: s.key_by(lambda v: 0).process(RememberingKeyed()),
    "co-process": lambda env, s: connected(env, s).process(RememberingCoProcess()),
    "keyed co-process": lambda env, s: connected(env, s).key_by(lambda v: 0, lambda v: 0).process(RememberingKeyedCo()),
    "co-map": lambda env, s: connected(env, s).map(RememberingCoMap()),
    "co-flat-map": lambda env, s: connected(env, s).flat_map(RememberingCoFlatMap()),
    "broadcast": lambda env, s: s.connect(scripted(env, pause()).broadcast(NOTHING)).process(RememberingBroadcast()),
}


class TestEveryKindOfFunction:
    @pytest.mark.parametrize("kind", KINDS)
    def test_its_state_goes_back_to_the_checkpoint(self, run, restarts, kind):
        FAILURES.append(3)
        outcome = run(lambda env: KINDS[kind](env, scripted(env, *SCRIPT)), restarts(1))
        assert outcome.results == [1, 2, 3, 4]
        first, second = LIVES
        assert first == (False, None, [])
        assert second == (True, 1, [1, 2])
        assert FINAL == {0: [1, 2, 3, 4]}

    @pytest.mark.parametrize("kind", KINDS)
    def test_it_is_initialized_before_it_is_opened(self, run, kind):
        run(lambda env: KINDS[kind](env, scripted(env, *SCRIPT)))
        assert ORDER == ["initialize", "open"]

    def test_a_sink(self, run, restarts):
        FAILURES.append(3)

        def build(env):
            stream = scripted(env, *SCRIPT)
            stream.add_sink(RememberingSink())
            return stream

        assert run(build, restarts(1)).results == [1, 2, 3, 4]
        assert LIVES == [(False, None, []), (True, 1, [1, 2])] and FINAL == {0: [1, 2, 3, 4]}

    def test_without_checkpoints_it_starts_anew(self, run, restarts):
        FAILURES.append(3)
        run(
            lambda env: KINDS["map"](env, scripted(env, *SCRIPT)),
            {**restarts(1), "execution.checkpointing.interval": None},
        )
        assert LIVES == [(False, None, [])] * 2 and FINAL == {0: [1, 2, 3, 4]}

    def test_a_failure_before_the_first_checkpoint_starts_anew(self, run, restarts):
        FAILURES.append(1)
        run(lambda env: KINDS["map"](env, scripted(env, *SCRIPT)), restarts(1))
        assert LIVES == [(False, None, [])] * 2

    def test_in_a_keyed_function_it_stands_beside_keyed_state(self, run, restarts):
        FAILURES.append("a3")
        script = ["a1", pause(), "b2", pause(), "a3", pause(), "b4"]

        def build(env):
            return scripted(env, *script).key_by(lambda v: v[0]).process(BothKinds())

        assert run(build, restarts(1)).results == [("a1", 1, 1), ("b2", 1, 2), ("a3", 2, 3), ("b4", 2, 4)]


class BothKinds(Remembers, KeyedProcessFunction):
    def initialize_state(self, context):
        super().initialize_state(context)
        self.count = context.get_keyed_state_store().get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.note(value)
        self.count.update((self.count.value() or 0) + 1)
        yield value, self.count.value(), len(self.seen)


class Numbered(SourceFunction, ListCheckpointed):
    """Counts to a number; its position is its only item."""

    def __init__(self, last):
        self.last = last
        self.next = 1
        self.cancelled = threading.Event()

    def __getstate__(self):
        return {"last": self.last, "next": 1}

    def __setstate__(self, state):
        self.__init__(state["last"])

    def restore_state(self, state):
        LIVES.append(("source", *state))
        self.next = state[0] if state else 1

    def snapshot_state(self, checkpoint_id, timestamp):
        return [self.next]

    def run(self, ctx):
        while self.next <= self.last and not self.cancelled.wait(0.002):
            with ctx.get_checkpoint_lock():
                ctx.collect(self.next)
                self.next += 1

    def cancel(self):
        self.cancelled.set()


class Listed(MapFunction, ListCheckpointed):
    """ListCheckpointed, the other interface: keeps what it has seen as items."""

    def __init__(self):
        self.seen = []

    def open(self, runtime_context):
        ORDER.append("open")

    def restore_state(self, state):
        ORDER.append("restore")
        LIVES.append(list(state))
        self.seen = list(state)

    def snapshot_state(self, checkpoint_id, timestamp):
        return list(self.seen)

    def map(self, value):
        if value in FAILURES:
            FAILURES.remove(value)
            raise ValueError("boom")
        self.seen.append(value)
        return list(self.seen)


class ReturnsNothing(Listed):
    def snapshot_state(self, checkpoint_id, timestamp):
        return None


class TestListCheckpointed:
    def test_it_is_restored_before_it_is_opened_and_only_after_a_failure(self, run, restarts):
        FAILURES.append(3)
        outcome = run(lambda env: scripted(env, *SCRIPT).map(Listed()), restarts(1))
        assert ORDER == ["open", "restore", "open"] and LIVES == [[1, 2]]
        assert outcome.results[-1] == [1, 2, 3, 4]

    def test_no_items_are_restored_as_none(self, run, restarts):
        FAILURES.append(3)
        run(lambda env: scripted(env, *SCRIPT).map(ReturnsNothing()), restarts(1))
        assert LIVES == [[]]

    def test_a_source(self, start, restarts):
        """Its position and what it emitted are in the same checkpoint, whenever that is taken."""

        def build(env):
            env.add_source(Numbered(60)).map(Listed()).discard()

        FAILURES.extend([20, 40])
        options = {**restarts(5, "1 ms"), "execution.checkpointing.interval": "10 ms"}
        start(build, options).get_job_execution_result().result(60)
        assert not FAILURES and len(LIVES) == 4
        for seen, (_, position) in zip(LIVES[::2], LIVES[1::2], strict=True):
            assert seen == list(range(1, position))


# --- how it is given out ---
def flinks_rule(parts, parallelism):
    """RoundRobinOperatorStateRepartitioner for one state: in order, the first ones get one more."""
    if len(parts) == parallelism:
        return parts
    items = [item for part in parts for item in part]
    base, odd = divmod(len(items), parallelism)
    given_out, feed = [], iter(items)
    for _ in range(parallelism):
        given_out.append([next(feed) for _ in range(base + (odd > 0))])
        odd -= odd > 0
    return given_out


class TestTheRule:
    @given(st.lists(st.lists(st.integers(), max_size=6), min_size=1, max_size=6), st.integers(1, 9))
    def test_as_flink_splits(self, parts, parallelism):
        assert split_evenly(parts, parallelism) == flinks_rule(parts, parallelism)

    @given(st.lists(st.lists(st.integers(), max_size=6), min_size=1, max_size=6), st.integers(1, 9))
    def test_nothing_is_lost_and_nobody_has_much_more(self, parts, parallelism):
        shares = split_evenly(parts, parallelism)
        assert [item for share in shares for item in share] == [item for part in parts for item in part]
        if len(parts) != parallelism:
            assert max(map(len, shares)) - min(map(len, shares)) <= 1


class Holder(MapFunction, CheckpointedFunction):
    """Keeps what it is given in three kinds of state; what it asks for at the start is up to its maker."""

    def __init__(self, asks=("list", "union", "broadcast"), writes=True):
        self.asks = asks
        self.writes = writes

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        get = {
            "list": lambda: store.get_list_state(ListStateDescriptor("list")),
            "union": lambda: store.get_union_list_state(ListStateDescriptor("union")),
            "broadcast": lambda: store.get_broadcast_state(MapStateDescriptor("broadcast")),
        }
        self.states = {kind: get[kind]() for kind in self.asks}
        found = {kind: sorted(s.items() if kind == "broadcast" else s.get()) for kind, s in self.states.items()}
        self.mine = {kind: [] for kind in ("list", "union")}
        self.first = found

    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()
        LIVES.append((self.subtask, self.first))
        # Union state is everybody's: as in Flink, who keeps it as it came would multiply it.
        if "union" in self.states:
            self.mine["union"] = self.first["union"][self.subtask :: runtime_context.get_number_of_parallel_subtasks()]
        if "list" in self.states:
            self.mine["list"] = list(self.first["list"])

    def snapshot_state(self, context):
        for kind in ("list", "union"):
            if kind in self.states:
                self.states[kind].update(self.mine[kind])

    def map(self, value):
        if self.writes:
            for kind in ("list", "union"):
                if kind in self.states:
                    self.mine[kind].append(value)
            if "broadcast" in self.states:
                self.states["broadcast"].put("seen by all", 1)
        return value


SEEN: list = []


class Sees(MapFunction):
    def map(self, value):
        SEEN.append(value)
        return value


@pytest.fixture
def lives(start, tmp_path, until):
    """Runs one job after the other, each from the savepoint of the one before: (parallelism, function, new values).

    Gives what each subtask of each job found in its state at the start.
    """

    def lives(*jobs, stop=True):
        path, script, found = None, [], []
        for parallelism, function, values in jobs:
            LIVES.clear()
            SEEN.clear()
            script = [*script, *values]
            options = {"execution.checkpointing.interval": None, "execution.state-recovery.path": path}
            client = start(program(function, script), options, parallelism=parallelism)
            until(lambda values=values, n=parallelism: len(SEEN) >= len(values) and len(LIVES) == n)
            path = client.stop_with_savepoint(False, str(tmp_path)).result(60)
            assert sorted(SEEN) == sorted(values)
            found.append([state for _, state in sorted(LIVES, key=lambda life: life[0])])
        return found

    return lives


def program(function, script):
    def build(env):
        scripted(env, *script, stay=True).rebalance().map(function).uid("holder").map(Sees()).discard()

    return build


class TestRescaling:
    @pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 3), (3, 2)])
    def test_lists_are_split_unions_go_to_all_and_maps_are_copied(self, lives, before, after):
        values = [10, 20, 30, 40, 50]
        first, second = lives((before, Holder(), values), (after, Holder(), []))
        assert first == [{"list": [], "union": [], "broadcast": []}] * before
        parts = [values[subtask::before] for subtask in range(before)]
        assert [sorted(found["list"]) for found in second] == list(map(sorted, flinks_rule(parts, after)))
        assert all(found["union"] == values for found in second)
        assert all(found["broadcast"] == [("seen by all", 1)] for found in second)

    def test_as_it_was_with_the_same_parallelism(self, lives):
        _, second = lives((2, Holder(), [1, 2, 3]), (2, Holder(), []))
        assert [found["list"] for found in second] == [[1, 3], [2]]

    def test_back_and_forth(self, lives):
        *_, last = lives((2, Holder(), [1, 2, 3]), (3, Holder(), [4]), (1, Holder(), []), (2, Holder(), []))
        assert sorted(item for found in last for item in found["list"]) == [1, 2, 3, 4]
        assert all(found["union"] == [1, 2, 3, 4] for found in last)

    def test_state_that_is_not_asked_for_is_kept_and_not_multiplied(self, lives):
        """State survives programs that do not know of it."""
        silent = Holder(asks=())
        *_, last = lives(
            (2, Holder(asks=("list", "union")), [1, 2, 3]),
            (2, silent, []),
            (3, silent, [4]),
            (1, silent, []),
            (2, Holder(asks=("list", "union")), []),
        )
        assert sorted(item for found in last for item in found["list"]) == [1, 2, 3]
        assert all(found["union"] == [1, 2, 3] for found in last)

    def test_nor_is_broadcast_state_lost_that_is_not_asked_for(self, lives):
        """Flink keeps every restored operator state, whether it is asked for or not."""
        *_, last = lives(
            (2, Holder(asks=("broadcast",)), [1, 2]), (2, Holder(asks=()), []), (2, Holder(asks=("broadcast",)), [])
        )
        assert last == [{"broadcast": [("seen by all", 1)]}] * 2

    def test_asking_for_some_keeps_the_others(self, lives):
        *_, last = lives(
            (2, Holder(asks=("list", "union")), [1, 2, 3]),
            (3, Holder(asks=("list",)), [4]),
            (1, Holder(asks=("union",)), []),
        )
        assert last == [{"union": [1, 2, 3]}]


# --- what cannot be ---
class Asks(MapFunction, CheckpointedFunction):
    """Does something with the operator state store at the start."""

    def __init__(self, at_start, at_snapshot=None):
        self.at_start = at_start
        self.at_snapshot = at_snapshot

    def initialize_state(self, context):
        self.state = self.at_start(context.get_operator_state_store())

    def snapshot_state(self, context):
        if self.at_snapshot is not None:
            self.at_snapshot(self.state)

    def map(self, value):
        return value


def ask(*args, **options):
    return lambda env: scripted(env, *SCRIPT).map(Asks(*args, **options)).name("Asking").uid("asking")


def with_ttl(descriptor):
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    return descriptor


def typed_list(info, store):
    LIVES.append(info)
    return store.get_list_state(ListStateDescriptor("l", info))


class TestMistakes:
    def test_one_name_for_two_kinds(self, run):
        def both(store):
            store.get_list_state(ListStateDescriptor("one"))
            store.get_union_list_state(ListStateDescriptor("one"))

        with pytest.raises(ProgramError, match=r"Asking \(uid asking.*'one' is list.*cannot be accessed as union"):
            run(ask(both))

    @pytest.mark.parametrize(
        "get",
        [
            lambda store: store.get_list_state(with_ttl(ListStateDescriptor("old"))),
            lambda store: store.get_union_list_state(with_ttl(ListStateDescriptor("old"))),
            lambda store: store.get_broadcast_state(with_ttl(MapStateDescriptor("old"))),
        ],
    )
    def test_a_time_to_live(self, run, restarts, get):
        with pytest.raises(ProgramError, match=r"Asking.*'old' cannot have a time to live: only keyed state can"):
            run(ask(get), restarts(3))

    @pytest.mark.parametrize("add", [lambda s: s.add(None), lambda s: s.add_all([1, None]), lambda s: s.update([None])])
    def test_none_in_a_list(self, run, add):
        with pytest.raises(CheckpointFailed, match=r"Asking \(uid asking.*cannot hold None"):
            run(ask(lambda store: store.get_list_state(ListStateDescriptor("l")), add))

    def test_asking_twice_gives_the_same(self, run):
        def twice(store):
            store.get_list_state(ListStateDescriptor("l")).add(1)
            assert store.get_list_state(ListStateDescriptor("l")).get() == [1]

        assert run(ask(twice)).results == [1, 2, 3, 4]

    def test_what_get_returns_is_not_the_state(self, run):
        def meddle(store):
            state = store.get_list_state(ListStateDescriptor("l"))
            state.get().append(1)
            assert state.get() == []

        assert run(ask(meddle)).results == [1, 2, 3, 4]

    def test_a_value_that_cannot_be_pickled(self, run):
        with pytest.raises(CheckpointFailed, match=r"Asking \(uid asking.*cannot pickle '_thread.lock' object"):
            run(
                ask(
                    lambda store: store.get_list_state(ListStateDescriptor("l")), lambda s: s.update([threading.Lock()])
                )
            )

    def test_keyed_state_without_keys(self, run):
        class Wrong(Asks):
            def initialize_state(self, context):
                context.get_keyed_state_store().get_state(ValueStateDescriptor("v"))

        with pytest.raises(JobFailed, match=r"Asking.*keyed state 'v'.*key_by"):
            run(lambda env: scripted(env, 1).map(Wrong(None)).name("Asking"))

    def test_a_type_that_cannot_become_another(self, start, run, tmp_path, until):
        def typed(info):
            get = partial(typed_list, info)
            return lambda env: scripted(env, 1, stay=True).map(Asks(get)).uid("asking").discard()

        client = start(typed(Types.STRING()))
        until(lambda: LIVES)
        path = client.stop_with_savepoint(False, str(tmp_path)).result(60)
        client = start(typed(Types.INT()), {"execution.state-recovery.path": path})
        with pytest.raises(StateMigrationException, match=r"'l'.*STRING.*INT"):
            client.get_job_execution_result().result(60)


class TestBroadcastStateOfAFunction:
    """The broadcast state that a function registers at the start is the one that its context gives."""

    class Rules(BroadcastProcessFunction, CheckpointedFunction):
        DESCRIPTOR = MapStateDescriptor("rules", Types.STRING(), Types.INT())

        def initialize_state(self, context):
            rules = context.get_operator_state_store().get_broadcast_state(self.DESCRIPTOR)
            if not context.is_restored():
                rules.put("default", 7)
            LIVES.append(sorted(rules.items()))

        def snapshot_state(self, context):
            pass

        def process_element(self, value, ctx):
            if value in FAILURES:
                FAILURES.remove(value)
                raise ValueError("boom")
            yield value, sorted(ctx.get_broadcast_state(self.DESCRIPTOR).items())

        def process_broadcast_element(self, value, ctx):
            ctx.get_broadcast_state(self.DESCRIPTOR).put(*value)

    def build(self, env):
        rules = scripted(env, ("a", 1), pause(), ("b", 2)).broadcast(self.Rules.DESCRIPTOR)
        return scripted(env, pause(), "x", pause(), "y", pause(), "z").connect(rules).process(self.Rules())

    def test_it_is_seen_by_the_elements(self, run):
        x, _, z = run(self.build).results
        assert ("default", 7) in x[1]
        assert z == ("z", [("a", 1), ("b", 2), ("default", 7)])

    def test_what_was_broadcast_is_seen_at_the_start_after_a_failure(self, run, restarts):
        FAILURES.append("z")
        results = run(self.build, restarts(1)).results
        assert [value for value, _ in results] == ["x", "y", "z"]
        assert ("a", 1) in LIVES[1] and ("b", 2) in LIVES[1]
