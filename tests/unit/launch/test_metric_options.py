"""The options of metrics: what they change, and what they refuse."""

import pytest

from penstock.common.configuration import Configuration
from penstock.engine.messages.commands_and_reports import MeasuringSettings
from penstock.errors import ConfigurationError
from penstock.service.launch.execution_settings import EnvironmentSettings, measuring
from penstock.service.options.known_options import is_known
from penstock.service.options.metric_options import OPTIONS


def read(**options):
    settings = EnvironmentSettings()
    settings.read(
        Configuration.from_dict({name.replace("__", "-").replace("_", "."): v for name, v in options.items()})
    )
    return settings


def test_options_say_what_slots_measure():
    found = measuring(
        read(
            metrics_latency_interval="2 s",
            metrics_latency_granularity="SUBTASK",
            metrics_latency_history__size="10",
            penstock_metrics_enabled="false",
            state_backend_rocksdb_metrics_num__snapshots="true",
            state_backend_rocksdb_metrics_estimate__num__keys="true",
        )
    )
    assert found == MeasuringSettings(False, 2000, "subtask", 10, ("num-snapshots", "estimate-num-keys"))


def test_what_the_program_says_later_wins():
    settings = read(metrics_latency_interval="2 s")
    settings.config.set_latency_tracking_interval(500)
    assert measuring(settings).latency_interval == 500


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_defaults_change_nothing(option):
    settings = EnvironmentSettings()
    option.apply(settings, option.parse(option.default))
    assert measuring(settings) == MeasuringSettings()
    assert is_known(option.name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metrics.latency.granularity", "record"),
        ("metrics.latency.history-size", "0"),
        ("metrics.latency.interval", "often"),
        ("metrics.scope.task", " "),
        ("state.backend.rocksdb.metrics.num-snapshots", "some"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(name, value):
    with pytest.raises(ConfigurationError, match=name.replace(".", r"\.")):
        EnvironmentSettings().read(Configuration.from_dict({name: value}))
