"""A record says what the view says, survives JSON, and needs none of the program's code."""

import json

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.job.job_record import JobRecord, as_json, from_json, vertex_id
from penstock.service.launch.submission import start, with_defaults
from penstock.testing import in_process


def finished_job(checkpoints):
    seen = []
    with in_process(), with_defaults(on_start=seen.append):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        env.get_config().set_global_job_parameters({"password": "hunter2", "shop": "north"})
        if checkpoints:
            env.enable_checkpointing(10)
        numbers = env.from_collection(list(range(10)), Types.INT()).uid("numbers")
        numbers.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).uid("sums").print().uid("out")
        handle = start(env, "sums of numbers")
        handle.result(60)
    assert seen == [handle]
    return handle


def test_a_record_survives_json():
    record = finished_job(checkpoints=True).record()
    assert from_json(JobRecord, json.loads(json.dumps(as_json(record)))) == record


def test_a_record_tells_of_the_job():
    record = finished_job(checkpoints=False).record()
    assert (record.name, record.status, record.batch) == ("sums of numbers", "FINISHED", False)
    assert record.started <= record.deployed <= record.ended == record.time_of("FINISHED") <= record.taken
    source, sums = record.vertices
    assert source.id == vertex_id("numbers") and source.inputs == ()
    assert [operator.uid for operator in sums.operators] == ["sums", "out"]
    assert [(one.vertex, one.partitioning) for one in sums.inputs] == [(source.id, "HASH")]
    assert [slot.slot for slot in record.slots] == [0, 1] and all(slot.finished and slot.place for slot in record.slots)
    assert record.settings.parameters == {"password": "******", "shop": "north"}
    assert record.settings.checkpoints is None


def test_fields_of_a_newer_version_are_left_out():
    data = as_json(finished_job(checkpoints=False).record()) | {"colour": "green"}
    assert from_json(JobRecord, data).name == "sums of numbers"
