"""Transformations against plain Python, with sorts that spill, and jobs that fail and begin anew."""

from collections import Counter, defaultdict
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.common import Configuration, RestartStrategies, Row
from penstock.dataset import DataSetUtils, ExecutionEnvironment, JoinHint, Order, WriteMode
from penstock.dataset.functions import RichMapFunction
from penstock.errors import AlreadyThere, InvalidArgument, JobFailed, NothingToExecute, ProgramError, TypeMismatch
from penstock.service.launch.submission import with_defaults
from penstock.testing import in_process

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), min_size=1, max_size=30)
TASKS = st.integers(1, 3)
SPILLS = Configuration.from_dict({"execution.sorted-inputs.memory": "1 kb"})


@pytest.fixture(autouse=True)
def without_spark():
    with in_process(), with_defaults(configuration=SPILLS):
        yield


def environment(parallelism=2):
    return ExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def groups(pairs):
    found = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found


@settings(max_examples=30, deadline=None)
@given(PAIRS, TASKS)
def test_groups(pairs, tasks):
    data = environment(tasks).from_collection(pairs)
    expected = groups(pairs)
    assert sorted(data.group_by(0).sum(1).collect()) == sorted((key, sum(vs)) for key, vs in expected.items())
    sizes = data.group_by(lambda pair: pair[0]).reduce_group(lambda values: [sum(1 for _ in values)])
    assert Counter(sizes.collect()) == Counter(len(vs) for vs in expected.values())
    lists = data.group_by(0).sort_group(1, Order.DESCENDING).reduce_group(lambda values: [tuple(values)])
    assert sorted(lists.collect()) == sorted(
        tuple((key, value) for value in sorted(vs, reverse=True)) for key, vs in expected.items()
    )
    assert sorted(data.distinct().collect()) == sorted(set(pairs))


@settings(max_examples=30, deadline=None)
@given(PAIRS, PAIRS, TASKS, st.sampled_from(JoinHint))
def test_joins(left, right, tasks, hint):
    env = environment(tasks)
    first, second = env.from_collection(left), env.from_collection(right)
    joined = first.join(second, hint).where(0).equal_to(0).collect()
    assert Counter(joined) == Counter((x, y) for x, y in product(left, right) if x[0] == y[0])
    keys = {x[0] for x in left}
    outer = first.left_outer_join(second).where(0).equal_to(0).with_(lambda x, y: (x, y))
    alone = [(x, None) for x in left if x[0] not in {y[0] for y in right}]
    assert Counter(outer.collect()) == Counter(joined) + Counter(alone)
    full = first.full_outer_join(second).where(0).equal_to(0).with_(lambda x, y: (x, y))
    others = [(None, y) for y in right if y[0] not in keys]
    assert Counter(full.collect()) == Counter(joined) + Counter(alone) + Counter(others)


@settings(max_examples=20, deadline=None)
@given(PAIRS, PAIRS, TASKS)
def test_co_groups_and_crosses(left, right, tasks):
    env = environment(tasks)
    first, second = env.from_collection(left), env.from_collection(right)
    counted = first.co_group(second).where(0).equal_to(0).with_(lambda xs, ys: [(len(list(xs)), len(list(ys)))])
    mine, others = groups(left), groups(right)
    assert Counter(counted.collect()) == Counter((len(mine[k]), len(others[k])) for k in {*mine, *others})
    for crossed in (first.cross(second), first.cross_with_huge(second)):
        assert Counter(crossed.collect()) == Counter(product(left, right))


@settings(max_examples=20, deadline=None)
@given(PAIRS, TASKS)
def test_distribution(pairs, tasks):
    data = environment(tasks).from_collection(pairs)
    places = data.partition_by_range(0).map_partition(lambda values: [sorted({key for key, _ in values})]).collect()
    bounds = [(keys[0], keys[-1]) for keys in places if keys]
    assert all(earlier[1] < later[0] for earlier, later in pairwise(bounds))
    numbered = DataSetUtils.zip_with_index(data).collect()
    assert sorted(number for number, _ in numbered) == list(range(len(pairs)))
    assert Counter(element for _, element in numbered) == Counter(pairs)
    assert sum(count for _, count in DataSetUtils.count_elements_per_partition(data).collect()) == len(pairs)
    drawn = DataSetUtils.sample_with_size(data, False, 5, 7).collect()
    assert len(drawn) == min(5, len(pairs)) and not Counter(drawn) - Counter(pairs)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=15), TASKS)
def test_a_delta_iteration_finds_components(edges, tasks):
    env = environment(tasks)
    numbers = sorted({end for edge in edges for end in edge})
    both = env.from_collection(edges + [(there, here) for here, there in edges])
    start = env.from_collection([(number, number) for number in numbers])
    iteration = start.iterate_delta(start, 100, 0)
    heard = iteration.get_workset().join(both).where(0).equal_to(0).with_(lambda vertex, edge: (edge[1], vertex[1]))
    better = (
        heard.group_by(0)
        .min(1)
        .join(iteration.get_solution_set())
        .where(0)
        .equal_to(0)
        .with_(lambda new, old: new if new[1] < old[1] else ())
        .filter(bool)
    )
    assert dict(iteration.close_with(better, better).collect()) == components(numbers, edges)


def components(numbers, edges):
    least = {number: number for number in numbers}
    for _ in numbers:
        for here, there in edges:
            least[here] = least[there] = min(least[here], least[there])
    return least


# --- failures ---
class FailsOnce(RichMapFunction):
    failed = False

    def open(self, runtime_context):
        self.superstep = runtime_context.get_superstep_number()

    def map(self, value):
        if self.superstep == 3 and not FailsOnce.failed:
            FailsOnce.failed = True
            raise RuntimeError("for once")
        return value + self.superstep


def test_an_iteration_that_fails_begins_anew():
    FailsOnce.failed = False
    env = environment()
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(1, 0))
    iteration = env.from_collection([0, 100]).iterate(4)
    assert sorted(iteration.close_with(iteration.map(FailsOnce())).collect()) == [10, 110]
    assert FailsOnce.failed


def test_errors_name_the_operator_and_the_element():
    data = environment().from_collection([1, 0]).map(lambda value: 1 // value).name("quotients")
    with pytest.raises(JobFailed, match=r"quotients \(uid .*ZeroDivisionError.*\n  on record 0"):
        data.collect()


def test_what_is_refused_at_once(tmp_path):
    env = environment()
    data = env.from_collection([(1, "a")])
    with pytest.raises(InvalidArgument, match=r"map takes a function, or an object with a method map\(\), not 3"):
        data.map(3)
    with pytest.raises(TypeMismatch, match=r"join: the keys have the types \(int\) and \(str\)"):
        data.join(data).where(0).equal_to(1)
    with pytest.raises(IndexError, match=r"group_by: there is no field 2; \(int, str\) has the fields 0 to 1"):
        data.group_by(2)
    with pytest.raises(ProgramError, match="the result of a superstep does not depend on its elements"):
        data.iterate(3).close_with(data)
    with pytest.raises(ProgramError, match="close_with"):
        data.iterate(3).map(lambda value: value).collect()
    with pytest.raises(NothingToExecute):
        env.execute()
    with pytest.raises(NothingToExecute):
        env.get_last_job_execution_result()


# --- files ---
def test_each_task_writes_a_file(tmp_path):
    env = environment(3)
    path = tmp_path / "out"
    env.from_collection([(number, 0.5) for number in range(20)]).rebalance().write_as_csv(str(path))
    env.execute()
    assert sorted(file.name for file in path.iterdir()) == ["1", "2", "3"]
    lines = [line for file in path.iterdir() for line in file.read_text().splitlines()]
    assert sorted(lines) == sorted(f"{number},0.5" for number in range(20))
    env.from_elements(Row(name="Ann", age=31)).write_as_text(str(path))
    with pytest.raises(AlreadyThere, match=r"WriteMode\.OVERWRITE"):
        env.execute()
    env.from_elements(Row(name="Ann", age=31)).write_as_text(str(path), WriteMode.OVERWRITE).set_parallelism(1)
    env.execute()
    assert path.read_text() == "+I[Ann, 31]\n"


def test_nothing_is_written_by_a_job_that_fails(tmp_path):
    env = environment()
    data = env.from_collection([1, 2, 0]).map(lambda value: 1 // value)
    data.write_as_text(str(tmp_path / "out"))
    with pytest.raises(JobFailed):
        env.execute()
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_the_plan_shows_the_strategy_of_a_join():
    env = environment()
    data = env.from_collection([(1, 2)])
    plan = env.explain(data.join(data).where(0).equal_to(0))
    assert "Join" in plan and "HASH" in plan
    assert "BROADCAST" in env.explain(data.join_with_tiny(data).where(0).equal_to(0))
