"""Flame graphs and log levels over REST."""

from __future__ import annotations

import pytest

from penstock.engine.observe.profiling import ProfileOrder
from penstock.service.options.rest_options import FlameSettings, rest_settings
from tests.rest import shapes
from tests.rest.conftest import client_of
from tests.rest.scripted_jobs import FINISHED, RUNNING, SINK, SOURCE
from tests.waiting import until

GRAPH = f"/jobs/{RUNNING}/vertices/{SINK}/flamegraph"


def graph(client, path=GRAPH):
    """The graph, once there is one."""
    return until(lambda: (answer := client.get(path).json())["endTimestamp"] > 0 and answer)


def test_the_first_request_begins_and_later_ones_show(client, jobs):
    assert client.get(GRAPH).json() == {"endTimestamp": -3}
    found = graph(client)
    assert found["data"] == {
        "name": "root",
        "value": 7,
        "children": [{"name": "write:1", "value": 7, "children": [{"name": "flush:2", "value": 7, "children": []}]}],
    }
    assert shapes.FLAMEGRAPH(found, "flamegraph") == []
    # One profile is for all vertices and all kinds, for a minute.
    assert graph(client, f"/jobs/{RUNNING}/vertices/{SOURCE}/flamegraph")["data"]["value"] == 0
    assert graph(client, f"{GRAPH}?type=off_cpu")["data"]["value"] == 0
    assert graph(client, f"{GRAPH}?type=ON_CPU&subtaskindex=1")["data"]["value"] == 7
    assert graph(client, f"{GRAPH}?subtaskindex=0")["data"]["value"] == 0
    assert jobs.profiled == [ProfileOrder(100, 50, 100)]


def test_an_old_graph_is_shown_while_a_new_one_is_made(jobs):
    client = client_of(jobs, flame=FlameSettings(refresh=1))
    first = graph(client)
    until(lambda: graph(client)["endTimestamp"] > first["endTimestamp"])
    assert len(jobs.profiled) > 1


def test_there_is_no_graph_of_what_has_ended_or_is_off_or_unknown(client, jobs):
    assert client.get(f"/jobs/{FINISHED}/vertices/{SINK}/flamegraph").json() == {"endTimestamp": -1}
    off = client_of(jobs, flame=FlameSettings(enabled=False))
    assert off.get(GRAPH).json() == {"endTimestamp": -2}
    assert client.get(f"/jobs/{RUNNING}/vertices/{'f' * 32}/flamegraph").status_code == 404
    assert client.get(f"{GRAPH}?subtaskindex=2").status_code == 404
    response = client.get(f"{GRAPH}?type=sideways")
    assert response.status_code == 400
    assert "ON_CPU" in response.json()["errors"][0]
    assert jobs.profiled == []


def test_a_profile_that_fails_is_tried_again(client, jobs):
    jobs.profile = lambda job_id, order: 1 / 0
    assert client.get(GRAPH).json() == {"endTimestamp": -3}
    del jobs.profile
    graph(client)


def test_flinks_options_say_how_graphs_are_made():
    options = {
        "rest.flamegraph.enabled": "false",
        "rest.flamegraph.num-samples": "7",
        "rest.flamegraph.delay-between-samples": "3 ms",
        "rest.flamegraph.stack-depth": "9",
        "rest.flamegraph.refresh-interval": "2 s",
        "rest.flamegraph.cleanup-interval": "4 s",
    }
    assert rest_settings(options).flame == FlameSettings(False, 7, 3, 9, 2000, 4000)


# --- levels ---
def test_levels_are_shown_and_changed(client, jobs):
    path = f"/jobs/{RUNNING}/log-levels"
    assert client.get(path).json() == {"levels": {"root": "INFO"}}
    answer = client.patch(path, json={"levels": {"my.code": "DEBUG"}})
    assert (answer.status_code, answer.json()) == (200, {"levels": {"root": "INFO", "my.code": "DEBUG"}})
    assert jobs.levels["my.code"] == "DEBUG"


@pytest.mark.parametrize("levels", [{"x": "LOUD"}, {"": "INFO"}, {"x": 5}, "DEBUG"])
def test_levels_that_there_are_not_are_refused(client, jobs, levels):
    answer = client.patch(f"/jobs/{RUNNING}/log-levels", json={"levels": levels})
    assert answer.status_code == 400
    assert jobs.levels == {"root": "INFO"}


def test_levels_of_an_unknown_job(client):
    assert client.get(f"/jobs/{'f' * 32}/log-levels").status_code == 404
    assert client.patch(f"/jobs/{'f' * 32}/log-levels", json={}).status_code == 404
