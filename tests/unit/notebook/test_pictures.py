"""A job as a picture: well-formed, harmless whatever names are in it, and with the right numbers."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.job.job_picture import MOST_VERTICES, caption, picture, rate, traffic_of
from penstock.engine.job.job_record import InputRecord, OperatorRecord, VertexRecord
from tests.rest import scripted_jobs

SVG = "{http://www.w3.org/2000/svg}"


def parsed(record):
    """The picture as XML, which it is as well as HTML."""
    return ET.fromstring(picture(record))


def texts(record):
    return [element.text for element in parsed(record).iter(f"{SVG}text")]


def with_rates():
    rates = {"numRecordsInPerSecond": 1500.0, "numRecordsOutPerSecond": 0.5, "busyTimeMsPerSecond": 250.0}
    busier = {**rates, "busyTimeMsPerSecond": 900.0}
    return scripted_jobs.job(slots=(scripted_jobs.slot(0, **rates), scripted_jobs.slot(1, **busier)))


def test_a_picture_has_a_box_for_each_vertex_and_a_line_for_each_input():
    record = with_rates()
    drawn = parsed(record)
    assert len(list(drawn.iter(f"{SVG}rect"))) == 2
    assert len(list(drawn.iter(f"{SVG}path"))) == 1
    assert "Sink: <print>" in texts(record)
    assert "2 subtasks, 90% busy" in texts(record)
    assert "in 3k/s, out 1/s" in texts(record)
    assert "RUNNING" in picture(record)


def test_a_vertex_stands_right_of_those_that_it_reads_from():
    source, sink = (int(rect.get("x")) for rect in parsed(with_rates()).iter(f"{SVG}rect"))
    assert source < sink


def test_rates_are_added_over_subtasks_and_busyness_is_that_of_the_busiest():
    record = with_rates()
    traffic = traffic_of(record, record.vertices[1])
    assert (traffic.records_in, traffic.records_out, traffic.busy) == (3000.0, 1.0, 0.9)
    assert caption(record) == f"job '{record.name}' ({record.job_id}) is RUNNING; 2 vertices, 1 records/s"


def test_what_went_wrong_is_shown():
    record = scripted_jobs.job(status="FAILED", failures=(scripted_jobs.failure(),), attempt=2)
    assert "last failure: sink failed" in picture(record)
    assert "2 restarts" in picture(record)


def test_a_job_that_has_no_graph_yet_has_a_headline():
    assert "<svg" not in picture(scripted_jobs.job(vertices=(), slots=()))


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.sampled_from("<>&\"'"), max_size=60))
def test_names_are_only_text(name):
    vertex = VertexRecord("v", name, 1, 1, "default", (OperatorRecord("u", name, "map"),))
    record = replace(scripted_jobs.job(vertices=(vertex,)), name=name)
    drawn = parsed(record)
    assert [element.text or "" for element in drawn.iter("b")] == [name]
    assert len(list(drawn.iter(f"{SVG}rect"))) == 1


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 90), st.randoms(use_true_random=False))
def test_boxes_never_lie_on_each_other(count, chance):
    vertices = []
    for number in range(count):
        inputs = {chance.randrange(number) for _ in range(chance.randrange(4))} if number else set()
        reads = tuple(InputRecord(str(one), 0, "HASH") for one in sorted(inputs))
        vertices.append(VertexRecord(str(number), "v", 1, 1, "default", (), reads))
    boxes = [
        (rect.get("x"), rect.get("y"))
        for rect in parsed(scripted_jobs.job(vertices=tuple(vertices))).iter(f"{SVG}rect")
    ]
    assert len(boxes) == len(set(boxes)) == min(count, MOST_VERTICES)


def test_rates_are_short():
    assert [rate(n) for n in (0, 0.25, 999, 1500, 2_500_000, 3e9)] == ["0", "0.25", "999", "1.5k", "2.5M", "3G"]
