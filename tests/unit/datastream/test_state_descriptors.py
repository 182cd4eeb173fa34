"""State descriptors and StateTtlConfig: what they refuse, and that they are plain data."""

from __future__ import annotations

import operator
import pickle

import pytest

from penstock.common.time import Duration, Time
from penstock.common.typeinfo import Types
from penstock.datastream.functions import AggregateFunction, ReduceFunction
from penstock.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)


class Longest(ReduceFunction):
    def reduce(self, value1, value2):
        return max(value1, value2, key=len)


class Mean(AggregateFunction):
    def create_accumulator(self):
        return 0, 0

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


MAKERS = [
    lambda name: ValueStateDescriptor(name, Types.INT(), 7),
    lambda name: ListStateDescriptor(name, Types.STRING()),
    lambda name: MapStateDescriptor(name, Types.STRING(), Types.INT()),
    lambda name: ReducingStateDescriptor(name, operator.add, Types.LONG()),
    lambda name: ReducingStateDescriptor(name, Longest()),
    lambda name: AggregatingStateDescriptor(name, Mean(), Types.PICKLED_BYTE_ARRAY()),
    ValueStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
]
every_kind = pytest.mark.parametrize("make", MAKERS)


@every_kind
def test_a_state_needs_a_name(make):
    with pytest.raises(ValueError, match="name of a state"):
        make("")
    for wrong in (None, 3):
        with pytest.raises(TypeError, match="the argument name must be a string, not"):
            make(wrong)


@every_kind
def test_descriptors_survive_pickling(make):
    descriptor = make("s")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).cleanup_full_snapshot().build())
    copy = pickle.loads(pickle.dumps(descriptor))
    assert copy == descriptor
    assert hash(copy) == hash(descriptor)
    assert copy.get_name() == "s"
    assert copy.ttl_config == descriptor.ttl_config


@every_kind
def test_descriptors_differ_by_name_and_by_time_to_live(make):
    expiring = make("s")
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
    assert make("s") == make("s") != make("t")
    assert make("s").ttl_config is None
    assert make("s") != expiring


def test_descriptors_differ_by_kind_type_and_default():
    different = [
        ValueStateDescriptor("s"),
        ValueStateDescriptor("s", Types.INT()),
        ValueStateDescriptor("s", Types.INT(), 0),
        ValueStateDescriptor("s", Types.STRING()),
        ListStateDescriptor("s", Types.INT()),
        ListStateDescriptor("s"),
        MapStateDescriptor("s"),
    ]
    assert all(a != b for i, a in enumerate(different) for b in different[:i])


def test_the_type_of_a_collection_is_made_of_the_types_of_its_elements():
    assert ListStateDescriptor("s", Types.INT()).type_info == Types.LIST(Types.INT())
    assert MapStateDescriptor("s", Types.INT(), Types.STRING()).type_info == Types.MAP(Types.INT(), Types.STRING())
    assert ListStateDescriptor("s").type_info is None
    assert MapStateDescriptor("s").type_info is None


def test_a_map_is_typed_on_both_sides_or_neither():
    with pytest.raises(ValueError, match="both keys and values"):
        MapStateDescriptor("s", Types.INT())


def test_a_reduction_is_a_function_object_or_a_callable():
    assert ReducingStateDescriptor("s", lambda a, b: a * b).get_reduce_function().reduce(3, 4) == 12
    longest = Longest()
    assert ReducingStateDescriptor("s", longest).get_reduce_function() is longest


@pytest.mark.parametrize("wrong", [None, 3, "sum", Longest])
def test_a_reduction_that_is_neither_is_refused(wrong):
    with pytest.raises(TypeError, match="reduce_function must be a ReduceFunction or a function, not"):
        ReducingStateDescriptor("s", wrong)


@pytest.mark.parametrize("wrong", [None, operator.add, Mean])
def test_an_aggregation_must_be_an_aggregate_function(wrong):
    with pytest.raises(TypeError, match="AggregateFunction"):
        AggregatingStateDescriptor("s", wrong)


def test_a_map_state_reads_like_a_dict():
    class InMemory(MapState):
        def __init__(self):
            self.entries = {}

        get = lambda self, key: self.entries.get(key)  # noqa: E731
        put = lambda self, key, value: self.entries.__setitem__(key, value)  # noqa: E731
        put_all = lambda self, dict_value: self.entries.update(dict_value)  # noqa: E731
        remove = lambda self, key: self.entries.pop(key, None)  # noqa: E731
        contains = lambda self, key: key in self.entries  # noqa: E731
        items = lambda self: self.entries.items()  # noqa: E731
        keys = lambda self: self.entries.keys()  # noqa: E731
        values = lambda self: self.entries.values()  # noqa: E731
        is_empty = lambda self: not self.entries  # noqa: E731
        clear = lambda self: self.entries.clear()  # noqa: E731

    state = InMemory()
    state["a"] = 1
    state["b"] = 2
    del state["a"]
    assert "b" in state
    assert "a" not in state
    assert state["a"] is None
    assert list(state) == ["b"]


class TestStateTtlConfig:
    def test_defaults(self):
        config = StateTtlConfig.new_builder(Time.hours(1)).build()
        assert config.get_ttl() == Time.hours(1)
        assert config.get_update_type() is StateTtlConfig.UpdateType.OnCreateAndWrite
        assert config.get_state_visibility() is StateTtlConfig.StateVisibility.NeverReturnExpired
        assert config.get_ttl_time_characteristic() is StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
        assert config.is_enabled()
        cleanup = config.get_cleanup_strategies()
        assert cleanup.is_cleanup_in_background()
        assert not cleanup.in_full_snapshot()
        assert cleanup.get_incremental_cleanup_strategy().get_cleanup_size() == 5
        assert not cleanup.get_incremental_cleanup_strategy().run_cleanup_for_every_record()
        assert cleanup.get_rocksdb_compact_filter_cleanup_strategy().get_query_time_after_num_entries() == 1000

    def test_every_choice(self):
        builder = StateTtlConfig.new_builder(Time.hours(1)).set_ttl(Time.days(2)).update_ttl_on_read_and_write()
        builder.return_expired_if_not_cleaned_up().use_processing_time().cleanup_full_snapshot()
        builder.cleanup_incrementally(10, True).cleanup_in_rocksdb_compact_filter(50, Duration.of_days(1))
        config = builder.disable_cleanup_in_background().build()
        cleanup = config.get_cleanup_strategies()
        assert config.get_ttl() == Time.days(2)
        assert config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        assert config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp
        assert cleanup.in_full_snapshot()
        assert cleanup.get_incremental_cleanup_strategy().get_cleanup_size() == 10
        assert cleanup.get_incremental_cleanup_strategy().run_cleanup_for_every_record()
        rocksdb = cleanup.get_rocksdb_compact_filter_cleanup_strategy()
        assert rocksdb.get_query_time_after_num_entries() == 50
        assert rocksdb.get_periodic_compaction_time() == Duration.of_days(1)

    def test_without_cleaning_in_the_background_only_chosen_strategies_remain(self):
        cleanup = (
            StateTtlConfig.new_builder(Time.hours(1)).disable_cleanup_in_background().build().get_cleanup_strategies()
        )
        assert cleanup.get_incremental_cleanup_strategy() is None
        assert cleanup.get_rocksdb_compact_filter_cleanup_strategy() is None

    def test_a_builder_that_goes_on_does_not_change_what_it_built(self):
        builder = StateTtlConfig.new_builder(Time.hours(1))
        before = builder.build()
        after = builder.cleanup_full_snapshot().build()
        assert not before.get_cleanup_strategies().in_full_snapshot()
        assert before != after

    def test_disabled_means_that_nothing_expires(self):
        builder = StateTtlConfig.new_builder(Time.hours(1)).set_update_type(StateTtlConfig.UpdateType.Disabled)
        assert not builder.build().is_enabled()

    @pytest.mark.parametrize("ttl", [Time.seconds(0), Time.seconds(-1), Duration.of_millis(0)])
    def test_a_time_to_live_must_be_positive(self, ttl):
        with pytest.raises(ValueError, match="must be positive"):
            StateTtlConfig.new_builder(ttl).build()

    def test_wrong_settings_are_refused(self):
        builder = StateTtlConfig.new_builder(Time.hours(1))
        with pytest.raises(ValueError, match="cleanup_size"):
            builder.cleanup_incrementally(0, False)
        with pytest.raises(TypeError, match=r"update_type must be .* one of .*'OnReadAndWrite'"):
            builder.set_update_type("OnReadAndWrites")
        with pytest.raises(TypeError, match="StateTtlConfig"):
            ValueStateDescriptor("s").enable_time_to_live(Time.hours(1))
