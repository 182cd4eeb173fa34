"""Profiles: which operator is at work in a stack, and whether it works or waits."""

import threading

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.observe.profiling import WAITING, ProfileOrder, Seen, profile
from penstock.service.rest.answers.flame_graph_tree import Kind, flame_graph
from penstock.testing import in_process
from tests.rest import scripted_jobs
from tests.waiting import until

stop = threading.Event()
working, waiting = threading.Event(), threading.Event()


def _work(value):
    working.set()
    while not stop.is_set():
        sum(range(1000))
    return value


def _wait(value):
    waiting.set()
    stop.wait(60)
    return value


@pytest.fixture(params=[_work, _wait])
def busy_job(request):
    """A job that is inside a function of its second operator."""
    stop.clear()
    working.clear()
    waiting.clear()
    with in_process():
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        env.from_collection([1]).map(lambda x: x).uid("first").map(request.param).uid("second").print()
        client = env.execute_async("busy")
        until(lambda: working.is_set() or waiting.is_set())
        yield client._job, request.param
        stop.set()
        client.get_job_execution_result().result()


def test_the_operator_at_work_is_found_with_its_function(busy_job):
    job, function = busy_job
    seen = job.profile(ProfileOrder(samples=20, millis=5))
    assert {(one.uid, one.subtask) for one in seen} == {("second", 0)}
    assert sum(one.count for one in seen) == 20
    assert all(any(function.__name__ in frame for frame in one.frames) for one in seen)
    # It begins with the first operator, not with what the engine does around it.
    assert all("Slot" not in one.frames[0] for one in seen)
    if function is _wait:
        assert not any(one.on_cpu for one in seen)
    else:  # a busy machine may not have let it work meanwhile
        until(lambda: any(one.on_cpu for one in job.profile(ProfileOrder(samples=20, millis=5))))


def test_a_profile_is_as_deep_as_asked_for(busy_job):
    job, _ = busy_job
    assert {len(one.frames) for one in job.profile(ProfileOrder(samples=2, millis=1, depth=2))} == {2}


def test_the_thread_of_a_slot_is_seen_waiting():
    thread = threading.Thread(target=stop.wait, args=(60,))
    stop.clear()
    thread.start()
    seen = profile(ProfileOrder(samples=5, millis=1), slot=3, driving=thread.ident)
    stop.set()
    thread.join()
    assert {(one.uid, one.subtask, one.on_cpu) for one in seen} == {(WAITING, 3, False)}


def test_nothing_is_left_behind():
    before = threading.active_count()
    profile(ProfileOrder(samples=2, millis=1))
    assert threading.active_count() == before


# --- as a tree ---
def seen(uid, subtask, on_cpu, frames, count):
    return Seen(uid, subtask, on_cpu, tuple(frames.split()), count)


SEEN = [
    seen("sink-1", 0, True, "a b", 3),
    seen("sink-1", 0, True, "a c", 4),
    seen("sink-1", 1, False, "a", 5),
    seen("source-1", 0, True, "z", 100),
    seen(WAITING, 1, False, "idle", 7),
    seen(WAITING, 5, False, "idle", 100),
]
SINK = scripted_jobs.vertices()[1]


def leaf(name, value):
    return {"name": name, "value": value, "children": []}


def test_a_flame_graph_is_the_tree_of_a_vertex():
    graph = flame_graph(SEEN, SINK, Kind.FULL, None, 17)
    tree = {"name": "a", "value": 12, "children": [leaf("c", 4), leaf("b", 3)]}
    assert graph == {"endTimestamp": 17, "data": {"name": "root", "value": 19, "children": [tree, leaf("idle", 7)]}}


def test_a_flame_graph_can_be_of_one_subtask_and_of_one_kind():
    on_cpu = flame_graph(SEEN, SINK, Kind.ON_CPU, None, 0)["data"]
    assert (on_cpu["value"], [child["name"] for child in on_cpu["children"]]) == (7, ["a"])
    assert flame_graph(SEEN, SINK, Kind.OFF_CPU, 1, 0)["data"]["value"] == 12
    assert flame_graph(SEEN, SINK, Kind.FULL, 0, 0)["data"]["value"] == 7


def test_children_never_have_more_than_their_parent():
    def check(node):
        assert sum(child["value"] for child in node["children"]) <= node["value"]
        for child in node["children"]:
            check(child)

    check(flame_graph(SEEN, SINK, Kind.FULL, None, 0)["data"])
