"""The dashboard asks for metrics that a running job has, with labels that they have."""

import json
import re
import threading
from pathlib import Path

from penstock.common.time import Time
from penstock.common.watermark_strategy import WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.window import TumblingEventTimeWindows
from penstock.metrics.scopes import ScopeFormats
from penstock.service.reporters.prometheus import Collector
from penstock.service.reporters.record_samples import samples_of
from penstock.testing import in_process

DASHBOARD = Path(__file__).parents[3] / "deployment/grafana/penstock.json"
RECORDS = 6
go_on, arrived = threading.Event(), threading.Event()


def _wait_at_the_last(value: int) -> int:
    """Keeps the job running until it was looked at."""
    if value == RECORDS - 1:
        arrived.set()
        go_on.wait(60)
    return value


def _exported() -> dict[str, set[str]]:
    """By name, as Prometheus sees them: the labels of the metrics of a job that runs."""
    with in_process(epoch_records=1):
        environment = StreamExecutionEnvironment.get_execution_environment()
        environment.set_parallelism(1)
        environment.enable_checkpointing(10)
        stream = environment.from_collection(range(RECORDS)).assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value * 1000)
        )
        windows = stream.map(_wait_at_the_last).key_by(lambda _: 0).window(TumblingEventTimeWindows.of(Time.seconds(2)))
        windows.reduce(lambda a, b: a + b).print()
        client = environment.execute_async("watched")
        assert arrived.wait(60)
        samples = samples_of(client._job.record(), ScopeFormats.from_configuration({}))
        go_on.set()
        client.get_job_execution_result().result()
    found: dict[str, set[str]] = {}
    for family in Collector(lambda: samples, True).collect():
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def test_everything_that_the_dashboard_shows_is_exported():
    dashboard = json.loads(DASHBOARD.read_text())
    exported = _exported()
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [one["expr"] for one in dashboard["annotations"]["list"]]
    assert len(asked) > 20
    for expression in asked:
        (name,) = set(re.findall(r"flink_\w+", expression))
        labels = set(re.findall(r"(\w+)=~", expression))
        labels |= {label for by in re.findall(r"by \(([^)]*)\)", expression) for label in by.split(", ")}
        assert name in exported, expression
        assert labels <= exported[name], expression
    (jobs,) = [one["query"]["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
    assert re.search(r"flink_\w+", jobs)[0] in exported


def test_panels_do_not_lie_on_each_other():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
