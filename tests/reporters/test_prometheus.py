"""Real Prometheus scrapes a reporter, and a real PushGateway is pushed to."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.service.reporters.prometheus import PrometheusReporter
from tests.services.fixtures import started
from tests.services.prometheus import Prometheus, PushGateway
from tests.unit.reporters.receivers import reporting, samples
from tests.waiting import until

DASHBOARD = Path(__file__).parents[2] / "deployment/grafana/penstock.json"


@pytest.fixture(scope="module")
def scraped() -> Iterator[PrometheusReporter]:
    with reporting("prometheus", port="0", host="127.0.0.1") as reporter:
        yield reporter


@pytest.fixture(scope="module")
def prometheus(scraped) -> Iterator[Prometheus]:
    yield from started(Prometheus([scraped.port]))


@pytest.fixture(scope="module")
def pushgateway() -> Iterator[PushGateway]:
    yield from started(PushGateway())


def test_prometheus_scrapes_a_job(prometheus):
    until(lambda: prometheus.query("up") and prometheus.query("up")[0]["value"][1] == "1")
    found = until(lambda: prometheus.query("flink_taskmanager_job_task_numRecordsIn"))
    assert {(one["metric"]["subtask_index"], one["value"][1]) for one in found} == {("0", "10"), ("1", "30")}
    (total,) = prometheus.query("sum by (job_name) (flink_taskmanager_job_task_numRecordsIn)")
    assert (total["metric"], total["value"][1]) == ({"job_name": "job_aa"}, "40")
    (quantile,) = prometheus.query('flink_jobmanager_job_sizes{quantile="0.95"}')
    assert quantile["value"][1] == "8"


def test_every_question_of_the_dashboard_is_understood(prometheus):
    for expression in expressions():
        prometheus.query(_with_variables(expression))


def test_what_is_pushed_is_there_until_the_end(pushgateway):
    options = {"hostUrl": pushgateway.url, "jobName": "orders", "groupingKey": "team=a;zone=2"}
    with reporting("pushgateway", **options) as reporter:
        reporter.report(samples())
        families = {family.name: family for family in text_string_to_metric_families(pushgateway.page())}
        (seen,) = families["flink_jobmanager_job_seen"].samples
        assert seen.value == 5
        assert seen.labels["job"] == reporter.job
        assert re.fullmatch(r"orders[0-9a-f]{32}", reporter.job)
        assert (seen.labels["team"], seen.labels["job_name"]) == ("a", "my_orders")
    assert "flink_jobmanager_job_seen" not in pushgateway.page()


def test_what_was_pushed_can_stay(pushgateway):
    options = {"jobName": "kept", "randomJobNameSuffix": "false", "deleteOnShutdown": "false"}
    with reporting("pushgateway", hostUrl=pushgateway.url, **options) as reporter:
        reporter.report(samples())
    assert 'flink_jobmanager_job_seen{host="server1",instance="",job="kept"' in pushgateway.page()


# --- the dashboard, as far as it can be checked without a server ---
def expressions() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def _with_variables(expression: str) -> str:
    return expression.replace("$job", ".*").replace("$__rate_interval", "1m").replace("$__interval", "1m")
