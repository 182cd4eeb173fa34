"""Every reporter against something that receives what it sends, as its system documents it."""

import gzip
import json
import logging
import re
import urllib.request
from contextlib import closing

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from penstock.service.reporters.spans import SpanFinder
from tests.rest import scripted_jobs
from tests.services.service import free_port
from tests.unit.reporters.receivers import Datagrams, Lines, Requests, reporting, samples

OWN = "server1.jobmanager.orders."
NUMBERS = {
    "seen": 5,
    "depth": -3.5,
    "isUp": 1,
    "perSecond.count": 12,
    "perSecond.rate": 0.25,
    "sizes.count": 4,
    "sizes.p99": 9,
    "sizes.mean": 4.5,
}


# --- StatsD ---
def test_statsd_gets_gauges():
    with closing(Datagrams()) as received, reporting("statsd", host="127.0.0.1", port=str(received.port)) as reporter:
        reporter.report(samples())
        lines = received.take()
    assert all(re.fullmatch(r"[^:|@\s]+:-?[0-9.e+-]+\|g", line) for line in lines)
    found = {name: float(value.removesuffix("|g")) for name, value in (line.split(":") for line in lines)}
    assert {name: found[OWN + name] for name in NUMBERS} == NUMBERS
    assert "server1.jobmanager.Status.JVM.CPU.Load" in found
    assert OWN + "version" not in found
    assert OWN + "broken" not in found
    # A negative gauge is set to zero first: its sign would mean a change.
    assert [line for line in lines if "depth" in line] == [OWN + "depth:0|g", OWN + "depth:-3.5|g"]


# --- Graphite ---
@pytest.mark.parametrize("protocol", ["TCP", "UDP"])
def test_graphite_gets_lines(protocol):
    with closing(Lines() if protocol == "TCP" else Datagrams()) as received:
        options = {"host": "127.0.0.1", "port": str(received.port), "protocol": protocol}
        with reporting("graphite", **options) as reporter:
            reporter.report(samples())
            pieces = received.take()
    assert all(len(piece) <= 1400 for piece in pieces)
    rows = [line.split(" ") for piece in pieces for line in piece.splitlines()]
    assert {len(row) for row in rows} == {3}
    assert {name: float(value) for name, value, _ in rows if name.removeprefix(OWN) in NUMBERS} == {
        OWN + name: value for name, value in NUMBERS.items()
    }
    assert len({moment for _, _, moment in rows}) == 1


def test_graphite_that_is_away_is_found_again():
    port = free_port()
    with reporting("graphite", host="127.0.0.1", port=str(port)) as reporter, pytest.raises(OSError):
        reporter.report(samples())


# --- Datadog ---
def test_datadog_gets_series():
    with closing(Requests()) as received:
        options = {"apikey": "secret", "url": received.url, "tags": "team:a,env:b", "maxMetricsPerRequest": "10"}
        with reporting("datadog", **options) as reporter:
            reporter.report(samples())
            first = received.seen[:]
            received.seen.clear()
            reporter.report(samples())
            second = received.seen[:]
    assert {path for path, _, _ in first} == {"/api/v1/series"}
    assert {headers["dd-api-key"] for _, headers, _ in first} == {"secret"}
    assert {headers["content-type"] for _, headers, _ in first} == {"application/json"}
    batches = [json.loads(body)["series"] for _, _, body in first]
    assert max(map(len, batches)) == 10
    assert all(
        set(one) - {"interval"} == {"metric", "points", "type", "host", "tags"} for batch in batches for one in batch
    )
    by_name = {one["metric"]: one for batch in batches for one in batch}
    seen = by_name[OWN + "seen"]
    assert (seen["type"], seen["points"][0][1], seen["host"]) == ("count", 5, "server1")
    assert seen["tags"] == ["team:a", "env:b", "job_name:my orders"]
    assert by_name[OWN + "depth"]["points"][0][1] == -3.5
    assert by_name[OWN + "perSecond"]["points"][0][1] == 0.25
    assert by_name[OWN + "sizes.95percentile"]["points"][0][1] == 8
    assert by_name[OWN + "sizes.avg"]["points"][0][1] == 4.5
    # A count is what was added since the last time.
    later = {one["metric"]: one for _, _, body in second for one in json.loads(body)["series"]}
    assert later[OWN + "seen"]["points"][0][1] == 0


def test_datadog_that_refuses_is_an_error():
    with closing(Requests()) as received, reporting("datadog", apikey="k", url=received.url) as reporter:
        received.status = 403
        with pytest.raises(OSError, match="403"):
            reporter.report(samples())


# --- OpenTelemetry ---
def _body(headers, body):
    return gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body


def _attributes(of):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in of.attributes}


def test_opentelemetry_gets_metrics():
    with closing(Requests()) as received:
        options = {"exporter.endpoint": received.url, "service.name": "shop", "exporter.headers": "x-team=a"}
        with reporting("otel", **options) as reporter:
            reporter.report(samples())
    ((path, headers, body),) = received.seen
    assert (path, headers["content-type"], headers["x-team"]) == ("/v1/metrics", "application/x-protobuf", "a")
    (of_resource,) = ExportMetricsServiceRequest.FromString(_body(headers, body)).resource_metrics
    assert _attributes(of_resource.resource)["service.name"] == "shop"
    (of_scope,) = of_resource.scope_metrics
    metrics = {metric.name: metric for metric in of_scope.metrics}
    assert len(metrics) == len(of_scope.metrics)
    seen = metrics["flink.jobmanager.job.seen"]
    (point,) = seen.sum.data_points
    assert (point.as_int, seen.description) == (5, "help of seen")
    assert _attributes(point) == {"host": "server1", "job_name": "my orders"}
    (point,) = metrics["flink.jobmanager.job.depth"].gauge.data_points
    assert point.as_double == -3.5
    quantiles = metrics["flink.jobmanager.job.sizes"].gauge.data_points
    assert {_attributes(point)["quantile"]: point.as_int for point in quantiles}[0.95] == 8
    assert metrics["flink.jobmanager.job.sizes.count"].sum.data_points[0].as_int == 4
    # The subtasks of a vertex are points of one metric.
    points = metrics["flink.taskmanager.job.task.numRecordsIn"].sum.data_points
    assert {_attributes(point)["subtask_index"]: point.as_int for point in points} == {"0": 10, "1": 30}


def test_opentelemetry_gets_spans_of_checkpoints_and_starts():
    record = scripted_jobs.job()
    with closing(Requests()) as received, reporting("otel", **{"exporter.endpoint": received.url}) as reporter:
        reporter.trace(SpanFinder().new(record))
    ((path, headers, body),) = received.seen
    assert path == "/v1/traces"
    (of_resource,) = ExportTraceServiceRequest.FromString(_body(headers, body)).resource_spans
    spans = [span for scope in of_resource.scope_spans for span in scope.spans]
    assert [span.name for span in spans] == ["Checkpoint"] * 3 + ["JobInitialization"]
    first = spans[0]
    assert (first.start_time_unix_nano, first.end_time_unix_nano) == (
        (scripted_jobs.NOW - 900) * 1_000_000,
        (scripted_jobs.NOW - 500) * 1_000_000,
    )
    assert _attributes(first)["checkpointId"] == 1
    assert _attributes(first)["fullSize"] == 200


def test_opentelemetry_that_refuses_is_an_error():
    with closing(Requests()) as received:
        received.status = 400
        with reporting("otel", **{"exporter.endpoint": received.url}) as reporter, pytest.raises(ConnectionError):
            reporter.report(samples())


# --- Prometheus ---
def _page(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return answer.read().decode()


def test_prometheus_page_has_flinks_names_and_labels():
    with reporting("prometheus", port="0", host="127.0.0.1") as reporter:
        families = {family.name: family for family in text_string_to_metric_families(_page(reporter.port))}
    (seen,) = families["flink_jobmanager_job_seen"].samples
    assert (seen.value, seen.labels) == (5, {"host": "server1", "job_name": "my_orders"})
    assert families["flink_jobmanager_job_seen"].documentation == "help of seen"
    assert families["flink_jobmanager_job_isUp"].samples[0].value == 1
    assert families["flink_jobmanager_job_perSecond"].samples[0].value == 0.25
    assert "flink_jobmanager_job_version" not in families
    sizes = families["flink_jobmanager_job_sizes"]
    assert sizes.type == "summary"
    assert {one.labels.get("quantile"): one.value for one in sizes.samples if one.name == sizes.name}["0.99"] == 9
    assert [one.value for one in sizes.samples if one.name.endswith("_count")] == [4]
    subtasks = families["flink_taskmanager_job_task_numRecordsIn"].samples
    assert {one.labels["subtask_index"]: one.value for one in subtasks} == {"0": 10, "1": 30}


def test_prometheus_labels_can_stay_as_they_are():
    with reporting("prometheus", port="0", host="127.0.0.1", filterLabelValueCharacters="false") as reporter:
        assert 'job_name="my orders"' in _page(reporter.port)


def test_prometheus_takes_the_next_port_of_a_range_and_gives_it_back():
    first = free_port()
    with reporting("prometheus", port=f"{first}-{first + 20}", host="127.0.0.1") as one:
        assert one.port == first
        with reporting("prometheus", port=f"{first}-{first + 20}", host="127.0.0.1") as other:
            assert other.port > first
        with pytest.raises(OSError, match="cannot be used"), reporting("prometheus", port=str(first), host="127.0.0.1"):
            pass
    with reporting("prometheus", port=str(first), host="127.0.0.1") as again:
        assert again.port == first


# --- the log ---
def test_the_log_gets_all_metrics_in_one_entry_and_spans(caplog):
    with caplog.at_level(logging.INFO), reporting("log") as reporter:
        reporter.report(samples())
        reporter.trace(SpanFinder().new(scripted_jobs.job()))
    entry, *spans = (record.getMessage() for record in caplog.records)
    assert f"{OWN}seen: 5" in entry
    assert f"{OWN}version: a text" in entry
    assert f"{OWN}perSecond: count=12, rate=0.25" in entry
    assert [line.partition(" ")[0] for line in spans] == ["Checkpoint"] * 3 + ["JobInitialization"]
