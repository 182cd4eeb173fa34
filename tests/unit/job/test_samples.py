"""Samples: what reporters get of a job's record."""

from penstock.engine.job.job_record import MetricRecord
from penstock.metrics.samples import Sample
from penstock.metrics.scopes import ScopeFormats
from penstock.service.reporters.record_samples import samples_of
from tests.rest import scripted_jobs

FLINKS = ScopeFormats.from_configuration({})


def _named(samples: list[Sample], name: str) -> list[Sample]:
    return [sample for sample in samples if sample.name == name]


def test_a_job_has_samples_of_its_driver_subtasks_and_operators():
    record = scripted_jobs.job(host="server1", attempt=3, usage={"Status.JVM.CPU.Load": 0.5})
    samples = samples_of(record, FLINKS)
    (restarts,) = _named(samples, "numRestarts")
    assert restarts.value == 3
    assert restarts.scope == ("server1", "jobmanager", record.name)
    assert restarts.logical_scope == ("jobmanager", "job")
    (load,) = _named(samples, "Load")
    assert load.scope == ("server1", "jobmanager", "Status", "JVM", "CPU")
    first, second = _named(samples, "numRecordsIn")
    assert (first.value, second.value) == (10, 30)
    assert first.kind == "counter"
    assert second.scope == ("worker-1", "taskmanager", "worker-1", record.name, "Sink: <print>", "1")
    assert second.variables["<job_id>"] == record.job_id
    assert second.variables["<task_id>"] == scripted_jobs.SINK
    watermarks = _named(samples, "currentOutputWatermark")
    assert [sample.value for sample in watermarks] == [5000, 4000, 5000, 4001]
    assert {sample.logical_scope for sample in watermarks} == {("taskmanager", "job", "task", "operator")}


def test_metrics_of_users_keep_their_kind_groups_and_variables():
    described = {
        "sink-1.region.north.sizes": MetricRecord(
            "sink-1", "sizes", "histogram", ("region", "north"), ("region",), {"region": "north"}
        )
    }
    readings = {"region.north.sizes.count": 2, "region.north.sizes.p99": 7.5}
    record = scripted_jobs.job(slots=(scripted_jobs.slot(0, **readings),), described=described)
    (sizes,) = _named(samples_of(record, FLINKS), "sizes")
    assert (sizes.kind, sizes.values) == ("histogram", {"count": 2, "p99": 7.5})
    assert sizes.scope[-2:] == ("region", "north")
    assert sizes.logical_scope[-2:] == ("operator", "region")
    assert sizes.variables["<region>"] == "north"


def test_formats_decide_the_scope():
    formats = ScopeFormats.from_configuration({"metrics.scope.operator": "<job_name>.<operator_name>.<nobody>"})
    record = scripted_jobs.job()
    (one, *_) = _named(samples_of(record, formats), "currentOutputWatermark")
    assert one.scope == (record.name, "Source: numbers", "<nobody>")
