"""OutputTag, and which methods a function must and may leave out."""

from __future__ import annotations

import pickle
import types

import pytest

from penstock.common.typeinfo import Types
from penstock.datastream import functions
from penstock.datastream.output_tag import OutputTag


def test_tags_with_one_id_are_one_output():
    assert OutputTag("late") == OutputTag("late", Types.STRING()) != OutputTag("early")
    assert {OutputTag("late"): 1}[OutputTag("late", Types.STRING())] == 1
    assert OutputTag("late") != "late"


def test_a_tag_keeps_its_type_when_pickled():
    tag = pickle.loads(pickle.dumps(OutputTag("late", Types.STRING())))
    assert tag == OutputTag("late")
    assert tag.type_info == Types.STRING()


def test_a_tag_needs_an_id():
    with pytest.raises(ValueError, match="OutputTag"):
        OutputTag("")
    for wrong in (None, 5):
        with pytest.raises(TypeError, match="OutputTag: the argument tag_id must be a string, not"):
            OutputTag(wrong)


REQUIRED = {
    "AggregateFunction": {"create_accumulator", "add", "get_result", "merge"},
    "AllWindowFunction": {"apply"},
    "BroadcastProcessFunction": {"process_element", "process_broadcast_element"},
    "CoFlatMapFunction": {"flat_map1", "flat_map2"},
    "CoGroupFunction": {"co_group"},
    "CoMapFunction": {"map1", "map2"},
    "CoProcessFunction": {"process_element1", "process_element2"},
    "FilterFunction": {"filter"},
    "FlatJoinFunction": {"join"},
    "FlatMapFunction": {"flat_map"},
    "JoinFunction": {"join"},
    "KeySelector": {"get_key"},
    "KeyedBroadcastProcessFunction": {"process_element", "process_broadcast_element"},
    "KeyedCoProcessFunction": {"process_element1", "process_element2"},
    "KeyedProcessFunction": {"process_element"},
    "MapFunction": {"map"},
    "OutputSelector": {"select"},
    "ParallelSourceFunction": {"run", "cancel"},
    "Partitioner": {"partition"},
    "ProcessAllWindowFunction": {"process"},
    "ProcessFunction": {"process_element"},
    "ProcessJoinFunction": {"process_element"},
    "ProcessWindowFunction": {"process"},
    "ReduceFunction": {"reduce"},
    "SinkFunction": {"invoke"},
    "SourceFunction": {"run", "cancel"},
    "WindowFunction": {"apply"},
}


@pytest.mark.parametrize("name", REQUIRED)
def test_exactly_these_methods_must_be_written(name):
    function = getattr(functions, name)
    assert function.__abstractmethods__ == REQUIRED[name]
    with pytest.raises(TypeError, match="abstract"):
        function()
    written = type("Written", (function,), dict.fromkeys(REQUIRED[name], lambda *args: None))()
    assert written.open(None) is None
    assert written.close() is None


@pytest.mark.parametrize("name", [name for name in functions.__all__ if name.startswith("Rich")])
def test_rich_functions_are_spellings(name):
    assert getattr(functions, name) is getattr(functions, name.removeprefix("Rich"))


@pytest.mark.parametrize(
    "name", ["ProcessFunction", "KeyedProcessFunction", "CoProcessFunction", "KeyedCoProcessFunction"]
)
def test_a_timer_context_is_a_context_that_knows_its_clock(name):
    function = getattr(functions, name)
    keyed = {"get_current_key"} if name.startswith("Keyed") else set()
    assert issubclass(function.OnTimerContext, function.Context)
    assert function.Context.__abstractmethods__ == {"timestamp", "timer_service", "output"} | keyed
    assert function.OnTimerContext.__abstractmethods__ - function.Context.__abstractmethods__ == {"time_domain"}
    assert function.on_timer(None, 0, None) is None


def test_generic_functions_can_be_parametrised_as_in_pyflink():
    window = functions.ProcessWindowFunction
    assert window[tuple, tuple, str, object].Context is window.Context
    for parametrised, function in (
        (window.Context[object], window.Context),
        (window[tuple, tuple, str, object], window),
        (functions.ProcessAllWindowFunction[tuple, tuple, object], functions.ProcessAllWindowFunction),
        (functions.KeyedBroadcastProcessFunction[str, int, int, str], functions.KeyedBroadcastProcessFunction),
    ):
        assert types.resolve_bases((parametrised,))[0] is function


def test_only_the_broadcast_side_of_a_keyed_function_visits_all_keys():
    function = functions.KeyedBroadcastProcessFunction
    assert hasattr(function.Context, "apply_to_keyed_state")
    assert not hasattr(function.ReadOnlyContext, "apply_to_keyed_state")
    assert function.OnTimerContext.__abstractmethods__ >= {"time_domain", "get_current_key", "timer_service", "output"}
