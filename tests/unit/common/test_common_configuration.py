"""Settings, execution settings and durations written as text."""

import copy

import pytest

from penstock.common import ConfigOptions, Configuration, ExecutionConfig
from penstock.common.configuration import parse_duration
from penstock.errors import ConfigurationError, InvalidArgument, InvalidParallelism


def test_values_keep_their_type_and_convert_when_asked():
    config = Configuration()
    config.set_integer("i", 3).set_boolean("b", True).set_float("f", 2).set_bytearray("y", bytearray(b"\x01"))
    config.set_string("s", "7")
    assert config.get_integer("i", 0) == 3 and config.get_string("i", "") == "3"
    assert config.get_boolean("b", False) is True and config.get_string("b", "") == "true"
    assert config.get_float("f", 0.0) == 2.0 and config.get_float("i", 0.0) == 3.0
    assert config.get_integer("s", 0) == 7
    assert config.get_bytearray("y", bytearray()) == bytearray(b"\x01")
    assert config.get_integer("missing", 9) == 9
    assert config.to_dict() == {"i": "3", "b": "true", "f": "2.0", "y": "01", "s": "7"}


def test_a_value_of_the_wrong_kind_names_its_key():
    with pytest.raises(ConfigurationError, match="retries is 'many', which is not a valid int"):
        Configuration.from_dict({"retries": "many"}).get_integer("retries", 1)
    with pytest.raises(ConfigurationError):
        Configuration.from_dict({"on": "yes"}).get_boolean("on", False)
    with pytest.raises(InvalidArgument, match="the argument value must be a string, not None"):
        Configuration().set_string("k", None)


def test_options():
    retries = ConfigOptions.key("retries").int_type().default_value(3)
    name = ConfigOptions.key("name").string_type().no_default_value()
    config = Configuration()
    assert (config.get(retries), config.get(retries, 5), config.get(name)) == (3, 5, None)
    config.set(retries, 4).set_string("name", "x")
    assert (config.get(retries), config.get(name)) == (4, "x")
    with pytest.raises(ConfigurationError):
        config.set(retries, "four")


def test_copies_are_independent():
    config = Configuration().set_string("a", "1")
    other = Configuration(config).add_all(config, "p.")
    assert other.key_set() == {"a", "p.a"}
    assert config == copy.deepcopy(config) != other
    assert hash(config) == hash(copy.deepcopy(config))
    assert config.remove_config("a") and not config.remove_config("a")
    assert not config.contains_key("a") and other.contains_key("a")
    target = {}
    other.add_all_to_dict(target)
    assert target == {"a": "1", "p.a": "1"}


@pytest.mark.parametrize(
    ("text", "items"),
    [("", []), ("a;b", ["a", "b"]), ("[a, 'b c']", ["a", "b c"]), ("- a\n- b", ["a", "b"]), ("a", ["a"])],
)
def test_lists(text, items):
    assert Configuration.parse_list_value(text) == items


@pytest.mark.parametrize(
    ("text", "millis"),
    [("200 ms", 200), ("1 min", 60_000), ("5s", 5000), ("2 H", 7_200_000), ("1d", 86_400_000), ("7", 7), ("900 µs", 0)],
)
def test_durations(text, millis):
    assert parse_duration(text) == millis


@pytest.mark.parametrize("text", ["", "ms", "1 fortnight", "-5 s", "1.5 s"])
def test_no_durations(text):
    with pytest.raises(ConfigurationError, match="is not a duration"):
        parse_duration(text)


def test_execution_settings_chain_and_compare():
    config = ExecutionConfig().set_parallelism(2).set_max_parallelism(8).enable_object_reuse()
    config.set_auto_watermark_interval(0).set_global_job_parameters({"k": 1}).disable_generic_types()
    assert (config.get_parallelism(), config.get_max_parallelism()) == (2, 8)
    assert config.is_object_reuse_enabled() and config.has_generic_types_disabled()
    assert config.get_auto_watermark_interval() == 0
    assert config.get_global_job_parameters() == {"k": "1"}
    assert config == copy.deepcopy(config) != ExecutionConfig()
    assert ExecutionConfig().get_parallelism() == ExecutionConfig.PARALLELISM_DEFAULT


@pytest.mark.parametrize(
    ("parallelism", "error"),
    [
        (0, InvalidParallelism),
        (-3, InvalidParallelism),
        (1.5, InvalidArgument),
        ("2", InvalidArgument),
        (True, InvalidArgument),
    ],
)
def test_impossible_parallelism(parallelism, error):
    with pytest.raises(error):
        ExecutionConfig().set_parallelism(parallelism)
    with pytest.raises(error):
        ExecutionConfig().set_max_parallelism(parallelism)


def test_parallelism_and_its_maximum_watch_each_other():
    with pytest.raises(InvalidParallelism, match="above the max parallelism 4"):
        ExecutionConfig().set_max_parallelism(4).set_parallelism(5)
    with pytest.raises(InvalidParallelism, match="below the parallelism 5"):
        ExecutionConfig().set_parallelism(5).set_max_parallelism(4)
    with pytest.raises(InvalidParallelism):
        ExecutionConfig().set_max_parallelism(32769)
    ExecutionConfig().set_max_parallelism(4).set_parallelism(ExecutionConfig.PARALLELISM_DEFAULT)


def test_intervals_must_not_be_negative():
    with pytest.raises(ValueError):
        ExecutionConfig().set_latency_tracking_interval(-1)
    with pytest.raises(TypeError):
        ExecutionConfig().set_task_cancellation_timeout("1")
