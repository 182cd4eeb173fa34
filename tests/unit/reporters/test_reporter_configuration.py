"""Which reporters a configuration asks for, and which metrics pass their filters."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import ConfigurationError
from penstock.metrics.samples import Sample
from penstock.reporters import Reporter
from penstock.service.reporters.filters import KINDS, pattern_of, sieve_of
from penstock.service.reporters.reporter import ReporterOptions
from penstock.service.reporters.reporter_configuration import _FLINKS, BUILT_IN, read_reporters

NEEDED = {
    "pushgateway": {"hostUrl": "http://localhost:9091"},
    "otel": {"exporter.endpoint": "http://localhost:4318"},
    "graphite": {"host": "localhost"},
    "datadog": {"apikey": "k"},
}


class Silent(Reporter):
    """Does nothing."""


def one(**options):
    return read_reporters(
        {f"metrics.reporter.mine.{name.replace('__', '.')}": value for name, value in options.items()}
    )


def with_needed(name, given):
    return {
        f"metrics.reporter.mine.{option}": value
        for option, value in {"factory.class": given, **NEEDED.get(name, {})}.items()
    }


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_reporter_has_a_short_name(name):
    (found,) = read_reporters(with_needed(name, name.upper()))
    assert f"{found.kind.__module__}:{found.kind.__name__}" == BUILT_IN[name]


@pytest.mark.parametrize("flinks", _FLINKS)
@pytest.mark.parametrize("suffix", ["", "Factory"])
def test_flinks_class_names_are_understood(flinks, suffix):
    (found,) = read_reporters(with_needed(_FLINKS[flinks], flinks + suffix))
    assert f"{found.kind.__module__}:{found.kind.__name__}" == BUILT_IN[_FLINKS[flinks]]


def test_several_at_once_and_only_those_that_are_named():
    options = {
        "metrics.reporter.a.factory.class": "log",
        "metrics.reporter.a.interval": "3 s",
        "metrics.reporter.b.factory.class": "statsd",
        "metrics.reporter.b.scope.delimiter": "_",
        "metrics.scope.delimiter": "/",
        "traces.reporter.c.factory.class": "org.apache.flink.traces.slf4j.Slf4jTraceReporterFactory",
    }
    a, b, c = read_reporters(options)
    assert [(each.options.name, each.traces) for each in (a, b, c)] == [("a", False), ("b", False), ("c", True)]
    assert (a.millis, b.millis) == (3000, 10_000)
    assert (a.delimiter, b.delimiter) == ("/", "_")
    assert [each.options.name for each in read_reporters({**options, "metrics.reporters": " b , "})] == ["b", "c"]


def test_a_class_of_ones_own_is_named_by_module():
    (found,) = one(factory__class=f"{__name__}:Silent")
    assert found.kind.__name__ == "Silent"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"factory__class": "org.apache.flink.metrics.influxdb.InfluxdbReporterFactory"}, "there is no 'org.apache"),
        ({"factory__class": "nowhere:Nobody"}, "No module named 'nowhere'"),
        ({"factory__class": "json:Nobody"}, "cannot be loaded"),
        ({"factory__class": "json:dumps"}, "is not a subclass"),
        ({"factory__class": "log", "interval": "soon"}, "metrics.reporter.mine.interval cannot be 'soon'"),
        ({"factory__class": "log", "interval": "0 s"}, "at least 1 ms"),
        ({"factory__class": "log", "filter__includes": "*:*:*:*"}, "more than three parts"),
        ({"factory__class": "log", "filter__excludes": "*:*:guage"}, "there is no type of metrics 'guage'"),
        ({"factory__class": "log", "scope__variables__additional": "region"}, "must be name:value"),
        ({"factory__class": "prometheus", "port": "many"}, "must be a port"),
        ({"factory__class": "prometheus", "port": "70000"}, "must be a port"),
        ({"factory__class": "pushgateway"}, "needs the option metrics.reporter.mine.hostUrl"),
        ({"factory__class": "graphite", "host": "h", "protocol": "SMOKE"}, "must be TCP or UDP"),
        ({"factory__class": "datadog"}, "needs the option metrics.reporter.mine.apikey"),
        ({"factory__class": "datadog", "apikey": "k", "dataCenter": "Moon"}, "one of US"),
        ({"factory__class": "otel"}, "exporter.endpoint"),
        ({"factory__class": "otel", "exporter__endpoint": "x", "exporter__protocol": "mail"}, "HTTP or gRPC"),
        ({"interval": "1 s"}, "there is no 'mine'"),
    ],
)
def test_what_cannot_work_is_told_before_the_job_starts(options, told):
    with pytest.raises(ConfigurationError, match=None) as error:
        one(**options)
    assert told in str(error.value)


def test_a_name_without_options_is_an_error():
    with pytest.raises(ConfigurationError, match=r"metrics\.reporter\.b\.factory\.class"):
        read_reporters({"metrics.reporters": "a,b", "metrics.reporter.a.factory.class": "log"})


def test_an_option_that_nobody_reads_is_warned_of(caplog):
    one(factory__class="prometheus", prot="9250")
    assert "metrics.reporter.mine.prot is not known" in caplog.text


# --- filters ---
def sample(name="numRecordsIn", kind="counter", scope=("taskmanager", "job", "task"), **variables):
    values = {"": 1} if kind in ("counter", "gauge") else {"count": 1, "rate": 0.5}
    return Sample(name, kind, values, scope, scope, {f"<{key}>": value for key, value in variables.items()})


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("*", True),
        ("*:*:*", True),
        ("taskmanager.job.task", True),
        ("*.job.*", True),
        ("*.job", False),
        ("jobmanager.*", False),
        ("taskmanagerXjobXtask", False),
        ("*:numRecords*", True),
        ("*:num*,uptime:gauge,counter", True),
        ("*:num*:gauge", False),
        ("*:Records", False),
        ("*::counter", True),
    ],
)
def test_filters_are_flinks(text, matches):
    assert pattern_of(text).matches(sample()) is matches


words = st.text("ab*.", min_size=1, max_size=5)


@given(
    scope=words, names=st.lists(words, min_size=1, max_size=3), kinds=st.sets(st.sampled_from(KINDS)), data=st.data()
)
def test_a_filter_matches_what_its_parts_match(scope, names, kinds, data):
    seen = sample(
        data.draw(st.text("ab.", min_size=1, max_size=4)),
        data.draw(st.sampled_from(KINDS)),
        tuple(data.draw(st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=3))),
    )
    text = f"{scope}:{','.join(names)}:{','.join(sorted(kinds))}"
    expected = (
        fnmatchcase(".".join(seen.logical_scope), scope)
        and any(fnmatchcase(seen.name, name) for name in names)
        and (not kinds or seen.kind in kinds)
    )
    assert pattern_of(text).matches(seen) == expected


def test_excludes_win_and_variables_are_left_out_and_added():
    options = ReporterOptions(
        "mine",
        {
            "filter.includes": "*:num*;*:uptime",
            "filter.excludes": "*:*Out",
            "scope.variables.excludes": "job_id;<task_id>",
            "scope.variables.additional": "region:north, zone:2",
        },
    )
    given_ = [sample(name, job_id="1", task_id="2", host="h") for name in ("numIn", "numOut", "uptime", "load")]
    kept = sieve_of(options).sift(given_)
    assert [one.name for one in kept] == ["numIn", "uptime"]
    assert kept[0].variables == {"<host>": "h", "<region>": "north", "<zone>": "2"}
