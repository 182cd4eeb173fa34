"""What can be done in the pages: every button, with its question, its progress and its errors."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from penstock.engine.job.job_record import vertex_id
from penstock.service.options.rest_options import Tokens
from penstock.service.rest.job_backend import LogFile, RunRequest, SavepointOrder
from tests.rest.scripted_jobs import ScriptedJobs
from tests.waiting import until
from tests.web.conftest import served
from tests.web.lively_jobs import ORDERS, LivelyJobs
from tests.web.test_pages import violations


@pytest.fixture
def orders() -> Iterator[tuple[LivelyJobs, str]]:
    jobs = LivelyJobs.usual()
    with served(jobs) as server:
        yield jobs, server.url


def job_page(watchful, url: str) -> Page:
    page = watchful.open(f"{url}/#/jobs/{ORDERS}")
    expect(page.get_by_role("heading", name="orders", exact=True)).to_be_visible()
    return page


def button(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=True)


# --- a job ---
def test_a_savepoint_is_asked_for_watched_and_told(orders, watchful, picture):
    jobs, url = orders
    jobs.hold.clear()
    page = job_page(watchful, url)
    button(page, "Savepoint").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The job runs on")
    assert not violations(page)
    picture(page, "savepoint")
    dialog.get_by_label("Folder").fill("file:///backups")
    button(page, "Take savepoint").click()
    running = page.get_by_role("progressbar", name="Savepoint of orders")
    expect(running).to_be_visible()
    page.goto(f"{url}/#/taskmanagers")
    expect(running).to_be_visible()
    jobs.hold.set()
    expect(page.get_by_text("The savepoint is complete.")).to_be_visible()
    expect(page.get_by_text("file:/savepoints/1")).to_be_visible()
    assert jobs.orders == [("savepoint", ORDERS, SavepointOrder("file:///backups"))]
    picture(page, "savepoint-done")
    page.get_by_role("button", name="Dismiss: Savepoint of orders").click()
    expect(page.get_by_text("The savepoint is complete.")).to_have_count(0)


def test_an_order_that_fails_says_why(orders, watchful):
    page = job_page(watchful, orders[1])
    button(page, "Savepoint").click()
    page.get_by_label("Folder").fill("/full")
    button(page, "Take savepoint").click()
    expect(page.locator(".operation.failed")).to_contain_text("the disk is full")


def test_a_job_is_stopped_rescaled_and_cancelled_after_a_question(orders, watchful):
    jobs, url = orders
    page = job_page(watchful, url)
    button(page, "Stop").click()
    page.get_by_label(re.compile("Drain")).check()
    button(page, "Stop with a savepoint").click()
    expect(page.get_by_text("The job has finished with a savepoint.")).to_be_visible()
    button(page, "Rescale").click()
    field = page.get_by_label("Parallelism")
    expect(field).to_have_value("4")
    field.fill("500")
    page.get_by_role("dialog").get_by_role("button", name="Rescale").click()
    expect(page.get_by_role("dialog")).to_be_visible()  # more than there are key groups
    field.fill("6")
    page.get_by_role("dialog").get_by_role("button", name="Rescale").click()
    expect(page.get_by_text("The job goes on with a parallelism of 6.")).to_be_visible()
    button(page, "Cancel").click()
    button(page, "Cancel the job").click()
    expect(page.get_by_text("The job has been told to end.")).to_be_visible()
    assert jobs.orders == [
        ("savepoint", ORDERS, SavepointOrder(stop=True, drain=True)),
        ("rescale", ORDERS, 6),
        ("cancel", ORDERS),
    ]


def test_who_thinks_better_of_it_orders_nothing(orders, watchful):
    jobs, url = orders
    page = job_page(watchful, url)
    for name in ("Savepoint", "Rescale", "Stop", "Cancel"):
        opener = button(page, name)
        opener.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        if name == "Stop":
            button(page, "Back").click()
        else:
            page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(opener).to_be_focused()
    assert jobs.orders == []


def test_a_checkpoint_is_taken_and_looked_into(orders, watchful):
    jobs, url = orders
    page = watchful.open(f"{url}/#/jobs/{ORDERS}/checkpoints/history")
    button(page, "Take a checkpoint now").click()
    expect(page.get_by_text("The checkpoint is complete.")).to_be_visible()
    assert jobs.orders == [("checkpoint", ORDERS, False)]
    table = page.get_by_role("region", name="Checkpoints", exact=True)
    assert table.locator("tbody tr").count() > 10
    table.get_by_role("row", name=re.compile("Completed")).first.get_by_role("button").click()
    details = page.get_by_role("region", name=re.compile(r"^Checkpoint \d+"))
    details.get_by_role("button", name="totals per minute").click()
    expect(details.get_by_role("region", name="Subtasks in the checkpoint")).to_contain_text("Beside it")


# --- programs ---
def test_a_program_is_uploaded_looked_at_run_and_deleted(orders, watchful, tmp_path):
    jobs, url = orders
    program = tmp_path / "clicks.py"
    program.write_text("print('clicks')")
    page = watchful.open(f"{url}/#/submit")
    page.get_by_label("choose a file").set_input_files(program)
    expect(page.get_by_role("heading", name="Run clicks.py")).to_be_visible()
    assert jobs.uploaded == {"1_clicks.py": b"print('clicks')"}
    assert not violations(page)
    button(page, "Show the plan").click()
    expect(page.locator(".node")).to_have_count(2)
    page.get_by_label("Arguments").fill("--topic 'a b'")
    page.get_by_label("Parallelism").fill("3")
    page.get_by_label("Options").fill("state.backend.type: rocksdb\n")
    button(page, "Run").click()
    expect(page).to_have_url(re.compile("#/jobs/e{32}"))
    request = jobs.orders[-1]
    assert isinstance(request, RunRequest)
    assert (request.arguments, request.parallelism) == (("--topic", "a b"), 3)
    assert request.configuration == {"state.backend.type": "rocksdb"}
    page.goto(f"{url}/#/submit")
    button(page, "Delete clicks.py").click()
    button(page, "Delete").click()
    expect(page.get_by_text("No program has been uploaded yet.")).to_be_visible()
    assert jobs.uploaded == {}


def test_a_file_that_is_no_program_is_refused_in_words(orders, watchful, tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    page = watchful.open(f"{orders[1]}/#/submit")
    page.get_by_label("choose a file").set_input_files(tmp_path / "notes.txt")
    expect(page.locator(".operation.failed")).to_contain_text("only files that end in .py")


def test_where_programs_are_not_taken_the_page_says_how_to_allow_it(watchful):
    with served(LivelyJobs.usual(), submit=False) as server:
        page = watchful.open(f"{server.url}/#/submit")
        expect(page.get_by_text("web.submit.enable=true")).to_be_visible()


# --- state, logs, metrics ---
def test_state_is_looked_up_by_key_and_browsed_page_by_page(orders, watchful):
    page = watchful.open(f"{orders[1]}/#/jobs/{ORDERS}/state")
    values = page.get_by_role("region", name="Keys and values")
    expect(values).to_contain_text("customer-049")
    button(page, "Next page").click()
    expect(values).to_contain_text("customer-099")
    button(page, "Next page").click()
    expect(values).to_contain_text("customer-119")
    expect(button(page, "Next page")).to_be_disabled()
    page.get_by_label("Key", exact=False).first.fill("customer-007")
    button(page, "Look up").click()
    expect(values.locator("tbody tr")).to_have_count(1)
    expect(values).to_contain_text('"orders":15')
    page.get_by_label("Key", exact=False).first.fill("nobody")
    button(page, "Look up").click()
    expect(values).to_contain_text("nothing")
    button(page, "Browse all keys").click()
    expect(values).to_contain_text("customer-000")


def test_a_log_is_followed_and_filtered(orders, watchful, tmp_path):
    jobs, url = orders
    log, out = tmp_path / "driver.log", tmp_path / "driver.out"
    log.write_text("12:00:01 INFO penstock: begun\n12:00:02 ERROR penstock: broken\n")
    out.write_text("hello from the program\n")
    jobs.files = [LogFile(log.name, log), LogFile(out.name, out)]
    page = watchful.open(f"{url}/#/jobs/{ORDERS}/logs")
    lines = page.get_by_role("log")
    expect(lines).to_contain_text("broken")
    expect(lines.locator(".log-error")).to_have_count(1)
    with log.open("a") as more:
        more.write("12:00:03 INFO penstock: and goes on <b>plainly</b>\n")
    expect(lines).to_contain_text("and goes on <b>plainly</b>")
    page.get_by_label("Only lines with").fill("BROKEN")
    expect(lines.locator("div")).to_have_count(1)
    page.get_by_role("link", name="Standard output").click()
    expect(page.get_by_role("log")).to_contain_text("hello from the program")


def test_metrics_are_pinned_and_stay_pinned(orders, watchful):
    page = watchful.open(f"{orders[1]}/#/jobs/{ORDERS}/metrics")
    page.get_by_text("Choose metrics").click()
    page.get_by_label("Name of a metric").fill("numberOfCompleted")
    page.get_by_role("button", name="+ numberOfCompletedCheckpoints").click()
    plot = page.get_by_role("img", name="numberOfCompletedCheckpoints, plotted over time")
    expect(plot.locator("canvas")).to_be_visible()
    page.reload()
    expect(plot.locator("canvas")).to_be_visible()
    page.get_by_role("button", name="Unpin numberOfCompletedCheckpoints").click()
    expect(plot).to_have_count(0)


# --- what other parts tell: the answers are theirs, so they are given here ---
STACKS = {
    "name": "root",
    "value": 100,
    "children": [
        {
            "name": "orders.py:37 process_element",
            "value": 84,
            "children": [
                {"name": "orders.py:12 parse", "value": 61, "children": [{"name": "json.loads", "value": 44}]},
                {"name": "rates.py:4 convert", "value": 19},
            ],
        },
        {"name": "penstock: waits for records", "value": 16},
    ],
}


def test_a_flame_graph_is_drawn_and_a_frame_made_the_whole(orders, watchful, picture):
    page = watchful.open(orders[1])
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(json={"endTimestamp": 1_794_769_186_000, "data": STACKS})

    page.route("**/flamegraph?*", answer)
    page.goto(f"{orders[1]}/#/jobs/{ORDERS}/graph/{vertex_id('totals')}/flamegraph")
    frame = page.get_by_role("button", name="orders.py:12 parse")
    expect(page.get_by_role("button", name="json.loads")).to_be_visible()
    assert not violations(page)
    picture(page, "vertex-flamegraph")
    frame.click()
    expect(page.get_by_text("61 % of them")).to_be_visible()
    expect(page.get_by_role("button", name="rates.py:4 convert")).to_have_count(0)
    button(page, "Whole graph").click()
    expect(page.get_by_role("button", name="rates.py:4 convert")).to_be_visible()
    button(page, "At work").click()
    page.get_by_label("Subtask").select_option("2")
    until(lambda: page.wait_for_timeout(20) or any("type=on_cpu&subtaskindex=2" in url for url in asked))


@pytest.mark.parametrize(("code", "text"), [(-1, "The job has ended"), (-2, "switched off"), (-3, "being taken")])
def test_without_a_flame_graph_the_page_says_why(orders, watchful, code, text):
    page = watchful.open(orders[1])
    page.route("**/flamegraph?*", lambda route: route.fulfill(json={"endTimestamp": code}))
    page.goto(f"{orders[1]}/#/jobs/{ORDERS}/graph/{vertex_id('totals')}/flamegraph")
    expect(page.get_by_text(text)).to_be_visible()


def test_levels_of_loggers_are_set_and_taken_back(orders, watchful):
    page = watchful.open(orders[1])
    levels: dict[str, str] = {}

    def answer(route: Route) -> None:
        if route.request.method == "PATCH":
            for name, level in route.request.post_data_json["levels"].items():
                levels[name] = level
                if not level:
                    del levels[name]
        route.fulfill(json={"levels": levels})

    page.route("**/log-levels", answer)
    page.goto(f"{orders[1]}/#/jobs/{ORDERS}/logs")
    page.get_by_text("Levels of loggers").click()
    page.get_by_label("Name of a logger").fill("orders.enrich")
    page.get_by_label("Level", exact=True).select_option("WARNING")
    button(page, "Set").click()
    expect(page.get_by_role("listitem").filter(has_text="orders.enrich")).to_contain_text("WARNING")
    assert not violations(page)
    page.get_by_role("button", name="Take back the level of orders.enrich").click()
    expect(page.get_by_role("listitem").filter(has_text="orders.enrich")).to_have_count(0)


def test_threads_are_shown(orders, watchful):
    page = watchful.open(orders[1])
    threads = [{"threadName": "MainThread", "stringifiedThreadInfo": "File serving.py, line 3"}]
    page.route("**/jobmanager/thread-dump", lambda route: route.fulfill(json={"threadInfos": threads}))
    page.goto(f"{orders[1]}/#/jobmanager/threads")
    expect(page.get_by_label("Stack of MainThread")).to_contain_text("serving.py")


def test_latency_is_told_by_source_and_operator(orders, watchful):
    page = watchful.open(orders[1])
    row = {"source": "Source: orders", "operator": "alerts", "median": 3, "p95": 9, "p99": 14, "max": 30}
    page.route("**/latency", lambda route: route.fulfill(json={"latencies": [row]}))
    page.goto(f"{orders[1]}/#/jobs/{ORDERS}/metrics")
    expect(page.get_by_role("region", name="Latency")).to_contain_text("14 ms")


# --- servers that are not there, or ask who is there ---
def test_the_page_says_that_the_server_is_away_and_goes_on_when_it_is_back(watchful):
    jobs = LivelyJobs.usual()
    with served(jobs) as server:
        port = server.port
        page = job_page(watchful, server.url)
        expect(page.locator(".node")).to_have_count(7)
    away = page.get_by_text("The server does not answer")
    expect(away).to_be_visible()
    expect(page.locator(".node")).to_have_count(7)
    with served(jobs, ports=(port,)):
        expect(away).to_have_count(0)
        node = page.get_by_role("button", name=re.compile("totals per minute"))
        before = node.inner_text()
        expect(node).not_to_have_text(before)


def test_the_page_asks_for_a_token_and_tells_readers_that_they_only_read(watchful):
    tokens = Tokens(read="token-to-read", operate="token-to-operate")
    with served(LivelyJobs.usual(), tokens=tokens) as server:
        page = watchful.open(f"{server.url}/#/jobs/{ORDERS}")
        question = page.get_by_role("dialog", name="This server asks for a token")
        token = question.locator("input")
        expect(token).to_be_visible()
        assert not violations(page)
        token.fill("wrong-token")
        button(page, "Go on").click()
        expect(question.get_by_role("alert")).to_contain_text("not valid")
        token.fill("token-to-read")
        button(page, "Go on").click()
        expect(page.locator(".node")).to_have_count(7)
        button(page, "Cancel").click()
        button(page, "Cancel the job").click()
        expect(page.locator(".operation.failed")).to_contain_text("allows reading, but no changes")
        button(page, "Sign out").click()
        expect(question).to_be_visible()


def test_a_page_that_is_paused_asks_nothing(orders, watchful):
    page = job_page(watchful, orders[1])
    page.get_by_role("button", name="Pause updates").click()

    def asks_nothing() -> bool:
        before = len(watchful.requests)
        page.wait_for_timeout(1500)  # three times as long as a page waits between two requests
        return len(watchful.requests) == before

    until(asks_nothing, every=0)
    before = len(watchful.requests)
    page.get_by_role("button", name="Resume updates").click()
    until(lambda: page.wait_for_timeout(50) or len(watchful.requests) > before + 1)


def test_nothing_and_nobody_known_is_told_in_words(watchful):
    jobs = ScriptedJobs()
    jobs.hold = threading.Event()
    with served(jobs) as server:
        page = watchful.open(server.url)
        expect(page.get_by_text("No job runs.")).to_be_visible()
        expect(page.get_by_text("No job has ended yet.")).to_be_visible()
        page.goto(f"{server.url}/#/jobs/{'0' * 32}")
        expect(page.get_by_text("This job is not known here.")).to_be_visible()
        page.goto(f"{server.url}/#/taskmanagers/nobody")
        expect(page.get_by_text("This task manager is gone.")).to_be_visible()
        page.goto(f"{server.url}/#/nowhere")
        expect(page.get_by_text("There is no such page.")).to_be_visible()
