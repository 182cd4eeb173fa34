"""From transformations to stages and chains."""

import pytest

from penstock.datastream import OutputTag, SlotSharingGroup, StreamExecutionEnvironment
from penstock.datastream.functions import CoMapFunction
from penstock.errors import DuplicateUid, InvalidParallelism, NothingToExecute, UnsupportedOperation
from penstock.graph.partitioning import Broadcast, ByKey, Forward, Rebalance
from penstock.service.launch.submission import plan_of


def environment(parallelism=2):
    return StreamExecutionEnvironment().set_parallelism(parallelism)


def compiled(env):
    return plan_of(env, "test")


def by_name(plan):
    return {node.name: node for node in plan.nodes}


def chains(plan):
    """The names of the operators of each chain."""
    found = {}
    for node in plan.nodes:
        found.setdefault((node.stage, node.chain), []).append(node.name)
    return list(found.values())


def test_forward_edges_chain_and_exchanges_cut_stages():
    env = environment()
    env.from_sequence(1, 9).map(str).name("A").filter(bool).name("B").key_by(len).map(str).name("C").print().name("P")
    plan = compiled(env)
    assert chains(plan) == [["Sequence Source", "A", "B"], ["C", "P"]]
    assert (plan.stages, plan.slots) == (2, 2)
    assert [type(edge.partitioning) for edge in plan.edges] == [Forward, Forward, ByKey, Forward]
    assert [edge.local for edge in plan.edges] == [True, True, False, True]


def test_one_subtask_needs_no_exchange():
    env = environment(1)
    env.from_sequence(1, 9).rebalance().map(str).key_by(len).map(str).broadcast().print()
    plan = compiled(env)
    assert plan.stages == 1 and all(edge.local for edge in plan.edges)


def test_a_source_without_a_parallel_form_is_rebalanced():
    env = environment(3)
    env.from_collection([1]).map(str).print()
    plan = compiled(env)
    assert [node.parallelism for node in plan.nodes] == [1, 3, 3]
    assert [type(edge.partitioning) for edge in plan.edges] == [Rebalance, Forward]
    assert (plan.stages, plan.slots) == (2, 3)


def test_parallelism_per_operator():
    env = environment(2)
    env.from_sequence(1, 2).map(str).set_parallelism(4).map(str).name("B").print().set_parallelism(1)
    plan = compiled(env)
    assert [node.parallelism for node in plan.nodes] == [2, 4, 2, 1]
    assert (plan.slots, plan.stages) == (4, 4)
    assert [type(edge.partitioning) for edge in plan.edges] == [Rebalance] * 3


def test_force_non_parallel():
    env = environment(3)
    stream = env.from_sequence(1, 2).map(str).force_non_parallel()
    stream.print()
    assert [node.parallelism for node in compiled(env).nodes] == [3, 1, 3]
    with pytest.raises(UnsupportedOperation, match=r"Map has no parallel form"):
        stream.set_parallelism(2)


def test_a_collection_cannot_be_parallel():
    with pytest.raises(UnsupportedOperation, match=r"Collection Source has no parallel form.*not 2"):
        environment().from_collection([1]).set_parallelism(2)


def test_disable_chaining_keeps_both_neighbours_away():
    env = environment()
    env.from_sequence(1, 2).map(str).name("A").map(str).name("B").disable_chaining().map(str).name("C").discard()
    assert chains(compiled(env)) == [["Sequence Source", "A"], ["B"], ["C", "Discard"]]


def test_start_new_chain_keeps_only_the_one_before_away():
    env = environment()
    env.from_sequence(1, 2).map(str).name("A").start_new_chain().map(str).name("B").discard()
    assert chains(compiled(env)) == [["Sequence Source"], ["A", "B", "Discard"]]


def test_chaining_can_be_switched_off():
    env = environment().disable_operator_chaining()
    env.from_sequence(1, 2).map(str).discard()
    plan = compiled(env)
    assert chains(plan) == [["Sequence Source"], ["Map"], ["Discard"]] and plan.stages == 1
    assert not env.is_chaining_enabled()


@pytest.mark.parametrize("group", ["heavy", SlotSharingGroup("heavy")])
def test_slot_sharing_groups_part_chains(group):
    env = environment()
    env.from_sequence(1, 2).map(str).slot_sharing_group(group).discard()
    plan = compiled(env)
    assert by_name(plan)["Map"].slot_sharing_group == by_name(plan)["Discard"].slot_sharing_group == "heavy"
    assert chains(plan) == [["Sequence Source"], ["Map", "Discard"]]


def test_a_union_is_no_operator():
    env = environment()
    a, b = env.from_sequence(1, 2).name("A"), env.from_sequence(3, 4).name("B")
    union = a.union(b, a)
    union.map(str).discard()
    plan = compiled(env)
    assert [node.name for node in plan.nodes] == ["A", "B", "Map", "Discard"]
    assert [(edge.source, edge.input_index) for edge in plan.incoming[2]] == [(0, 0), (1, 0), (0, 0)]
    for setting in (lambda: union.name("x"), lambda: union.uid("x"), lambda: union.set_parallelism(1)):
        with pytest.raises(UnsupportedOperation, match=r"a union is no operator"):
            setting()


def test_streams_of_two_environments_do_not_mix():
    one, other = environment().from_sequence(1, 2), environment().from_sequence(1, 2)
    for attempt in (lambda: one.union(other), lambda: one.connect(other)):
        with pytest.raises(UnsupportedOperation, match=r"different environments"):
            attempt()


class Both(CoMapFunction):
    def map1(self, value):
        return value

    map2 = map1


def test_two_inputs_and_side_outputs_are_edges():
    env = environment()
    left, right = env.from_sequence(1, 2), env.from_sequence(3, 4)
    both = left.connect(right.broadcast()).map(Both())
    both.get_side_output(OutputTag("late")).print()
    plan = compiled(env)
    assert [(type(e.partitioning), e.input_index, e.tag) for e in plan.edges] == [
        (Forward, 0, None),
        (Broadcast, 1, None),
        (Forward, 0, "late"),
    ]


def test_an_operator_waits_for_its_furthest_input():
    env = environment()
    source = env.from_sequence(1, 9)
    far = source.rebalance().map(str).name("Far").rebalance().map(str).name("Further")
    far.union(source).map(str).name("Join").discard()
    plan = compiled(env)
    stages = {node.name: node.stage for node in plan.nodes}
    assert stages == {"Sequence Source": 0, "Far": 1, "Further": 2, "Join": 2, "Discard": 2}
    skipping = next(edge for edge in plan.incoming[by_name(plan)["Join"].id] if edge.source == 0)
    assert isinstance(skipping.partitioning, Forward) and not skipping.local


def test_a_stage_can_be_skipped_in_a_job(run):
    def build(env):
        source = env.from_sequence(1, 9)
        far = source.rebalance().map(lambda v: v * 10).rebalance().map(lambda v: v)
        return far.union(source).map(lambda v: v)

    assert sorted(run(build, parallelism=2)) == sorted([*range(1, 10), *range(10, 100, 10)])


def test_forward_between_different_parallelisms():
    env = environment()
    env.from_sequence(1, 2).forward().map(str).set_parallelism(3).discard()
    with pytest.raises(
        InvalidParallelism, match=r"forward\(\) from Sequence Source \(parallelism 2\) to Map .*rebalance"
    ):
        compiled(env)
    env = environment()
    env.from_sequence(1, 2).forward().map(str).discard()
    assert isinstance(compiled(env).edges[0].partitioning, Forward)


def test_uids():
    env = environment()
    env.from_sequence(1, 2).uid("numbers").map(str).set_uid_hash("abc").filter(bool).name("Keep it!").discard()
    assert [node.uid for node in compiled(env).nodes] == ["numbers", "abc", "keep-it-2", "discard-3"]


def test_a_uid_twice():
    env = environment()
    env.from_sequence(1, 2).map(str).uid("x").filter(bool).name("Keep").uid("x").discard()
    with pytest.raises(DuplicateUid, match=r"uid 'x' is given to 2 operators \(Map, Keep\)"):
        compiled(env)


def test_max_parallelism():
    env = environment().set_max_parallelism(50)
    env.from_sequence(1, 2).map(str).set_max_parallelism(10).discard()
    assert [node.max_parallelism for node in compiled(env).nodes] == [50, 10, 50]
    assert [node.max_parallelism for node in _plain_plan().nodes] == [128, 128]


def _plain_plan():
    env = environment()
    env.from_sequence(1, 2).discard()
    return compiled(env)


def test_nothing_to_execute():
    env = environment()
    with pytest.raises(NothingToExecute, match=r"Define a source"):
        compiled(env)
    env.from_sequence(1, 2)
    with pytest.raises(NothingToExecute):
        compiled(env)
    env.from_sequence(1, 2).discard()
    env.close()
    with pytest.raises(NothingToExecute):
        compiled(env)


def test_a_long_chain_is_no_trouble():
    env = environment(1)
    stream = env.from_sequence(1, 2)
    for _ in range(2000):
        stream = stream.map(str)
    stream.discard()
    assert len(compiled(env).nodes) == 2002


def test_a_node_read_by_two_is_one_node():
    env = environment()
    stream = env.from_sequence(1, 2).map(str)
    stream.print()
    stream.discard()
    assert [node.name for node in compiled(env).nodes] == ["Sequence Source", "Map", "Print to Std. Out", "Discard"]
