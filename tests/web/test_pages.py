"""Every page in a browser: what it shows, that axe finds nothing serious in it, and that it fits on a phone."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Page, expect

from penstock.engine.job.job_record import vertex_id
from tests.web.conftest import AXE, PHONE, served
from tests.web.lively_jobs import BROKEN, DONE, LARGE, ORDERS, RESTARTED, THOUSAND, LivelyJobs

TOTALS, ORDERS_VERTEX = vertex_id("totals"), vertex_id("orders")
VERTEX = f"jobs/{ORDERS}/graph/{TOTALS}"

# By name: where it is, and what it shows when it is there.
PAGES = {
    "overview": ("", "enrich-clicks"),
    "jobs": ("jobs", "nightly-report"),
    "job-graph": (f"jobs/{ORDERS}", "Bottleneck"),
    "vertex-subtasks": (VERTEX, "Task manager"),
    "vertex-backpressure": (f"{VERTEX}/backpressure", "Back pressure: ok"),
    "vertex-watermarks": (f"{VERTEX}/watermarks", "Behind the furthest"),
    "vertex-metrics": (f"{VERTEX}/metrics", "numRecordsInPerSecond"),
    "vertex-flamegraph": (f"{VERTEX}/flamegraph", "All samples"),
    "vertex-accumulators": (f"{VERTEX}/accumulators", "rejected"),
    "checkpoints": (f"jobs/{ORDERS}/checkpoints", "Latest savepoint"),
    "checkpoint-history": (f"jobs/{ORDERS}/checkpoints/history", "Acknowledged"),
    "checkpoint-summary": (f"jobs/{ORDERS}/checkpoints/summary", "p999"),
    "checkpoint-configuration": (f"jobs/{ORDERS}/checkpoints/configuration", "EmbeddedRocksDBStateBackend"),
    "exceptions": (f"jobs/{BROKEN}/exceptions", "Traceback (most recent call last)"),
    "job-metrics": (f"jobs/{ORDERS}/metrics", "Records out"),
    "timeline": (f"jobs/{RESTARTED}/timeline", "Restarting"),
    "state": (f"jobs/{ORDERS}/state", "customer-001"),
    "logs": (f"jobs/{ORDERS}/logs", "checkpoint 18 is complete"),
    "configuration": (f"jobs/{ORDERS}/configuration", "orders.v3"),
    "submit": ("submit", "Drop a Python file"),
    "task-managers": ("taskmanagers", "worker-2"),
    "task-manager": ("taskmanagers/worker-1", "Memory in use"),
    "job-manager": ("jobmanager", "state.backend.type"),
    "job-manager-metrics": ("jobmanager/metrics", "Choose metrics"),
    "finished-job": (f"jobs/{DONE}", "The job does not run"),
}


def violations(page: Page, *rules: str) -> list[str]:
    """What axe finds serious, in words."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    run = "options => axe.run(options).then(result => JSON.stringify(result.violations))"
    found = json.loads(page.evaluate(run, options))
    return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in ("serious", "critical")]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_it_is_for(name, lively, watchful, picture):
    place, shows = PAGES[name]
    page = watchful.open(f"{lively[1]}/#/{place}")
    expect(page.get_by_role("main")).to_contain_text(shows)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert not violations(page), "light"
    if name != "vertex-flamegraph":  # whose picture is taken where it has samples
        picture(page, name)
    page.emulate_media(color_scheme="dark")
    assert not violations(page, "color-contrast"), "dark"
    if name in ("job-graph", "job-metrics"):
        picture(page, f"{name}-dark")
    page.set_viewport_size(PHONE)
    page.wait_for_function(f"document.documentElement.scrollWidth <= {PHONE['width']}")
    if name in ("overview", "job-graph"):
        page.emulate_media(color_scheme="light")
        picture(page, f"{name}-phone")


# --- the graph ---
def test_the_graph_tells_of_the_bottleneck_and_its_figures_move(lively, watchful):
    page = watchful.open(f"{lively[1]}/#/jobs/{ORDERS}")
    expect(page.get_by_role("status").filter(has_text="Bottleneck")).to_contain_text("totals per minute")
    node = page.get_by_role("button", name=re.compile("totals per minute.*bottleneck"))
    expect(node).to_have_class(re.compile("hot"))
    expect(page.get_by_role("button", name=re.compile("Source: orders"))).to_have_class(re.compile("held"))
    expect(page.locator(".edge text", has_text="BROADCAST")).to_be_visible()
    before = node.inner_text()
    node.evaluate("element => { element.seenBefore = true; }")
    expect(node).not_to_have_text(before)
    assert node.evaluate("element => element.seenBefore"), "what changes is not drawn anew, so that nothing flickers"


def test_a_vertex_is_chosen_with_the_keyboard(lively, watchful):
    page = watchful.open(f"{lively[1]}/#/jobs/{ORDERS}")
    node = page.get_by_role("button", name=re.compile("^alerts"))
    node.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(vertex_id("alerts")))
    expect(page.get_by_role("heading", name="alerts")).to_be_visible()
    expect(node).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name="Close this vertex").click()
    expect(page.get_by_role("heading", name="alerts")).to_have_count(0)


def test_the_graph_is_moved_and_zoomed(lively, watchful):
    page = watchful.open(f"{lively[1]}/#/jobs/{ORDERS}")
    plane = page.locator(".graph-plane")
    expect(plane).to_be_visible()
    before = plane.get_attribute("style")
    page.get_by_role("button", name="Zoom in").click()
    expect(plane).not_to_have_attribute("style", before or "")
    zoomed = plane.get_attribute("style")
    box = page.locator(".graph-box").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 120, box["y"] + 60, steps=4)
    page.mouse.up()
    expect(plane).not_to_have_attribute("style", zoomed or "")
    page.get_by_role("button", name="Fit").click()


# --- many ---
@pytest.fixture(scope="module")
def many() -> str:
    jobs = LivelyJobs.usual()
    jobs.known = dict.fromkeys((LARGE, THOUSAND))  # type: ignore[assignment]
    with served(jobs) as server:
        yield server.url


def test_five_hundred_vertices_are_drawn_and_found(many, watchful, picture):
    page = watchful.open(f"{many}/#/jobs/{LARGE}")
    expect(page.locator(".node")).to_have_count(500)
    expect(page.get_by_role("button", name=re.compile("Source: everything"))).to_be_in_viewport()
    assert page.locator("tbody tr").count() < 120, "rows that cannot be seen are not drawn"
    picture(page, "many-vertices")
    page.goto(f"{many}/#/jobs/{LARGE}/graph/{vertex_id('v321')}")
    expect(page.get_by_role("button", name=re.compile(r"^step 321\b"))).to_be_in_viewport()


def test_a_thousand_subtasks_are_sorted_and_scrolled_through(many, watchful):
    page = watchful.open(f"{many}/#/jobs/{THOUSAND}/graph/{ORDERS_VERTEX}")
    table = page.get_by_role("region", name="Subtasks")
    expect(table.locator("table")).to_have_attribute("aria-rowcount", "1001")
    assert table.locator("tbody tr").count() < 120
    head = table.get_by_role("button", name="Subtask")
    head.click()
    head.click()
    expect(table.locator("tbody tr").first.locator("td").first).to_have_text("999")
    table.evaluate("box => { box.scrollTop = box.scrollHeight; }")
    expect(table.get_by_role("cell", name="0", exact=True).first).to_be_visible()


# --- themes ---
def test_a_chosen_theme_is_kept(lively, watchful):
    page = watchful.open(lively[1])
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_label("Colours").select_option("dark")
    assert page.evaluate(background) != light
    page.reload()
    expect(page.get_by_label("Colours")).to_have_value("dark")
    assert page.evaluate(background) != light
