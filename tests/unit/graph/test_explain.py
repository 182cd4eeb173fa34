"""Plans as text, compared with the snapshots in tests/plans, and as JSON."""

import json
from pathlib import Path

import pytest

from penstock.common import WatermarkStrategy
from penstock.datastream import OutputTag, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.functions import KeyedBroadcastProcessFunction, KeyedProcessFunction, ProcessFunction
from penstock.datastream.state import MapStateDescriptor

PLANS = Path(__file__).parents[2] / "plans"
LATE = OutputTag("late")
RULES = MapStateDescriptor("rules")


class Process(ProcessFunction):
    def process_element(self, value, ctx):
        yield value


class Keyed(KeyedProcessFunction):
    process_element = Process.process_element


class Rules(KeyedBroadcastProcessFunction):
    process_element = Process.process_element

    def process_broadcast_element(self, value, ctx):
        pass


def word_count(env):
    lines = env.from_collection(["to be or not to be"])
    lines.flat_map(str.split).map(lambda w: (w, 1)).key_by(0).sum(1).print("words")


def one_subtask(env):
    env.set_parallelism(1)
    word_count(env)


def side_outputs(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_sequence(1, 9).assign_timestamps_and_watermarks(strategy)
    main = stream.key_by(lambda v: v).process(Keyed()).uid("main")
    main.print()
    main.get_side_output(LATE).rebalance().map(str).name("Late").uid("late").add_sink(print)


def broadcast(env):
    rules = env.from_collection([1]).name("Rules").uid("rules")
    events = env.generate(rate=10).name("Events")
    events.key_by(lambda v: v).connect(rules.broadcast(RULES)).process(Rules()).name("Apply").discard()


def every_distribution(env):
    source = env.from_sequence(1, 9)
    for partition in ("rebalance", "rescale", "shuffle", "broadcast", "global_", "forward"):
        getattr(source, partition)().map(str).name(partition).uid(partition).discard().uid(f"sink-{partition}")
    source.partition_custom(lambda key, n: 0, lambda v: v).map(str).name("custom").discard()


def chains_and_groups(env):
    stream = env.from_sequence(1, 9).map(str).name("A").map(str).name("B").disable_chaining()
    stream = stream.map(str).name("C").start_new_chain().map(str).name("D").slot_sharing_group("heavy")
    stream.map(str).name("E").set_parallelism(4).discard()


def union_and_batch(env):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    one, two = env.from_collection([1]).name("One"), env.from_collection([2]).name("Two")
    one.union(two).key_by(lambda v: v).reduce(max).print()


PROGRAMS = [
    word_count,
    one_subtask,
    side_outputs,
    broadcast,
    every_distribution,
    chains_and_groups,
    union_and_batch,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_the_plan_is_the_one_in_the_snapshot(program):
    env = StreamExecutionEnvironment().set_parallelism(2)
    program(env)
    expected = (PLANS / f"{program.__name__}.txt").read_text(encoding="utf-8")
    assert env.explain(program.__name__.replace("_", " ")) == expected


def test_an_operator_in_a_chain_says_so_if_it_does_not_read_from_the_one_above():
    env = StreamExecutionEnvironment().set_parallelism(1)
    main = env.from_sequence(1, 9).process(Process())
    main.print()
    main.get_side_output(LATE).map(str).name("Late").discard()
    assert "side output 'late'" in env.explain()


def test_every_snapshot_has_a_program():
    assert {path.stem for path in PLANS.glob("*.txt")} >= {program.__name__ for program in PROGRAMS}


def test_explaining_is_not_executing():
    env = StreamExecutionEnvironment().set_parallelism(2)
    word_count(env)
    assert env.explain() == env.explain()


def test_the_plan_as_json():
    env = StreamExecutionEnvironment().set_parallelism(2)
    env.from_collection([1]).set_description("one number").key_by(lambda v: v).sum().uid("sum").print()
    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert nodes == [
        {
            "id": 1,
            "type": "Source: Collection Source",
            "pact": "Data Source",
            "contents": "one number",
            "parallelism": 1,
            "uid": "collection-source-0",
            "stage": 0,
            "chain": 0,
        },
        {
            "id": 2,
            "type": "Sum",
            "pact": "Operator",
            "contents": "Sum",
            "parallelism": 2,
            "uid": "sum",
            "stage": 1,
            "chain": 1,
            "predecessors": [{"id": 1, "ship_strategy": "HASH", "side": "first"}],
        },
        {
            "id": 3,
            "type": "Sink: Print to Std. Out",
            "pact": "Data Sink",
            "contents": "Sink: Print to Std. Out",
            "parallelism": 2,
            "uid": "print-to-std--out-2",
            "stage": 1,
            "chain": 1,
            "predecessors": [{"id": 2, "ship_strategy": "FORWARD", "side": "first"}],
        },
    ]
