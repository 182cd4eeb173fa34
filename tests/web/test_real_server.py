"""The pages in front of a real server with real jobs: everything that can be done there, as a person would do it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.server.processes import ServerProcess
from tests.waiting import SPARK_SECONDS, until
from tests.web.conftest import Watchful

pytestmark = [pytest.mark.service, pytest.mark.timeout(900)]
PROGRAM = Path(__file__).with_name("sensors_program.py")
LONG = SPARK_SECONDS * 1000


@pytest.fixture(scope="module")
def server(tmp_path_factory, browser) -> Iterator[ServerProcess]:
    started = ServerProcess(tmp_path_factory.mktemp("web-server"), web__refresh_interval="500 ms").start()
    started.options["rest.port"] = started.url.rpartition(":")[2]  # the same when it is started again
    yield started
    started.stop()


def run(page: Page, url: str, arguments: str = "", **fields: str) -> None:
    """Upload the program, fill in the form, and wait for the page of the job."""
    page.goto(f"{url}/#/submit")
    page.get_by_label("choose a file").set_input_files(PROGRAM)
    page.get_by_role("heading", name="Run sensors_program.py").wait_for()
    page.get_by_label("Arguments").fill(arguments)
    for label, text in {"Parallelism": "1", **fields}.items():
        page.get_by_label(label).fill(text)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page).to_have_url(re.compile("#/jobs/[0-9a-f]{32}$"), timeout=LONG)


def state(page: Page):
    return page.locator(".job-title .badge")


def button(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def test_a_job_from_its_submission_to_its_end(server: ServerProcess, watchful: Watchful):
    page = watchful.open(server.url)
    expect(page.get_by_text("No job runs.")).to_be_visible()
    run(page, server.url)
    job = page.url
    expect(state(page)).to_have_text("Running", timeout=LONG)
    count = page.get_by_role("button", name=re.compile("^Count"))
    expect(count).to_contain_text(re.compile(r"[1-9].*/s"), timeout=LONG)

    count.click()
    page.get_by_role("link", name="Flame graph").click()
    expect(page.locator(".frame").first).to_be_visible(timeout=LONG)
    page.goto(f"{job}/logs")
    page.get_by_text("Levels of loggers").click()
    page.get_by_label("Name of a logger").fill("sensors.count")
    button(page, "Set").click()
    expect(page.get_by_role("listitem").filter(has_text="sensors.count")).to_contain_text("DEBUG", timeout=LONG)
    page.goto(f"{server.url}/#/jobmanager/threads")
    expect(page.get_by_text("MainThread").first).to_be_visible(timeout=LONG)
    page.goto(f"{job}/checkpoints")
    expect(page.get_by_text("Latest checkpoint")).to_be_visible(timeout=LONG)
    page.goto(f"{job}/state")
    page.get_by_label("Key", exact=False).first.fill("3")
    button(page, "Look up").click()
    expect(page.get_by_role("region", name="Keys and values")).to_contain_text(re.compile(r"3\s*\d+"))
    page.goto(f"{job}/logs/stdout")
    expect(page.get_by_role("log")).to_contain_text("sensor 4: 2", timeout=LONG)
    page.goto(f"{job}/metrics")
    expect(page.get_by_role("img", name="Records out, plotted over time")).to_be_visible(timeout=LONG)
    expect(page.get_by_role("region", name="Latency")).to_contain_text("Count", timeout=LONG)

    button(page, "Savepoint").click()
    button(page, "Take savepoint").click()
    expect(page.get_by_text("The savepoint is complete.")).to_be_visible(timeout=LONG)
    button(page, "Rescale").click()
    page.get_by_role("dialog").get_by_label("Parallelism").fill("2")
    page.get_by_role("dialog").get_by_role("button", name="Rescale").click()
    expect(page.get_by_text("The job goes on with a parallelism of 2.")).to_be_visible(timeout=LONG)
    page.goto(job)
    expect(count).to_contain_text("\u00d72", timeout=LONG)

    server.stop()
    away = page.get_by_text("The server does not answer")
    expect(away).to_be_visible(timeout=LONG)
    expect(count).to_be_visible()
    server.start()
    expect(away).to_have_count(0, timeout=LONG)
    expect(state(page)).to_have_text("Running", timeout=LONG)
    expect(count).to_contain_text(re.compile(r"[1-9].*/s"), timeout=LONG)

    button(page, "Stop").click()
    button(page, "Stop with a savepoint").click()
    expect(page.get_by_text("The job has finished with a savepoint.")).to_be_visible(timeout=LONG)
    savepoint = page.locator(".operation.done", has_text="finished with").locator("code").inner_text()
    expect(state(page)).to_have_text("Finished", timeout=LONG)

    run(page, server.url, **{"Start from a savepoint": savepoint})
    expect(state(page)).to_have_text("Running", timeout=LONG)
    page.goto(f"{page.url}/checkpoints")
    expect(page.get_by_text("Restored from")).to_be_visible(timeout=LONG)
    button(page, "Cancel").click()
    button(page, "Cancel the job").click()
    expect(state(page)).to_have_text("Canceled", timeout=LONG)


def test_a_job_that_fails_shows_the_traceback_of_its_program(server: ServerProcess, watchful: Watchful):
    page = watchful.open(server.url)
    run(page, server.url, "break")
    expect(state(page)).to_have_text("Failed", timeout=LONG)
    page.get_by_role("link", name=re.compile("Exceptions 2")).click()
    traceback = re.compile(r"line \d+, in process_element[\s\S]*sensor \d is broken")
    expect(page.locator(".traceback").first).to_contain_text(traceback)
    expect(page.get_by_text("The job was not started again.")).to_be_visible()
    expect(page.locator(".failure")).to_have_count(2)
    page.goto(f"{server.url}/#/")
    expect(page.get_by_role("region", name="Ended jobs")).to_contain_text("broken")
    page.goto(f"{server.url}/#/jobmanager/log")
    expect(page.get_by_role("log")).to_contain_text("the server listens at")
    until(lambda: not watchful.complaints)
