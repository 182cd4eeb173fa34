"""A browser, and pages in it that tell when they load something from elsewhere or complain."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from penstock.service.options.rest_options import RestSettings
from penstock.service.rest import activity_history
from penstock.service.rest.app import create_app
from penstock.service.rest.http_server import RestServer
from penstock.service.rest.job_backend import LogFile
from penstock.service.rest.web_pages import FOLDER
from tests.rest.scripted_jobs import ScriptedJobs
from tests.web.lively_jobs import LivelyJobs

LOG = """\
2026-11-16 09:12:04,118 INFO    penstock.job: job 'orders' runs; its slots are ready after 1.2 s
2026-11-16 09:12:09,301 INFO    penstock.checkpoint: checkpoint 1 is complete: 18.2 MB in 160 ms
2026-11-16 09:13:29,882 WARNING orders.enrich: no customer 4711: the order waits (enrich with customer, subtask 1)
2026-11-16 09:13:34,017 ERROR   penstock.checkpoint: checkpoint 17 failed: No space left on device
2026-11-16 09:13:39,330 INFO    penstock.checkpoint: checkpoint 18 is complete: 21.9 MB in 180 ms
"""
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
PATIENCE_MILLIS = 60_000
"""How long a page may take to show something. A test that hits the limit has failed: nothing depends on the figure."""
expect.set_options(timeout=PATIENCE_MILLIS)


def _needed(what: str, there: bool) -> None:
    if not there:
        if os.environ.get("PENSTOCK_REQUIRE_SERVICES"):
            pytest.fail(f"{what} is missing")
        pytest.skip(f"{what} is missing")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    _needed("chromium (Debian, Ubuntu: apt install chromium)", chromium is not None)
    _needed("the built web pages (make web)", (FOLDER / "index.html").is_file() and AXE.is_file())
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@contextmanager
def served(jobs: ScriptedJobs, **changes: Any) -> Iterator[RestServer]:
    settings = RestSettings(**{"ports": (0,), "submit": True, "refresh_millis": 500, **changes})
    server = RestServer(create_app(jobs, settings), settings).start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def lively(tmp_path_factory) -> Iterator[tuple[LivelyJobs, str]]:
    jobs = LivelyJobs.usual()
    log = tmp_path_factory.mktemp("logs") / "driver.log"
    log.write_text(LOG)
    jobs.files = [LogFile(log.name, log)]
    with pytest.MonkeyPatch.context() as patch, served(jobs) as server:
        patch.setattr(activity_history, "EVERY_SECONDS", 0.2)
        yield jobs, server.url


class Watchful:
    """Opens pages, and notes whatever they should not do."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def open(self, url: str, size: dict[str, int] = WIDE, colours: str = "light", **more: Any) -> Page:
        context = self._browser.new_context(viewport=size, color_scheme=colours, reduced_motion="reduce", **more)
        context.set_default_timeout(PATIENCE_MILLIS)
        self._contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("console", self._heard)
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(url)
        return page

    def _heard(self, message: Any) -> None:
        # A path that answers with an error is told of by the browser, too; what the page makes of it is tested.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def watchful(browser: Browser) -> Iterator[Watchful]:
    made = Watchful(browser)
    yield made
    made.close()
    assert not made.complaints
    foreign = [url for url in made.requests if not url.startswith(("http://127.0.0.1:", "blob:", "data:"))]
    assert not foreign, "a page has loaded something from elsewhere"


def _shrink(path: Path) -> None:
    """A page has few colours; without Pillow the picture is larger."""
    with suppress(ImportError):
        from PIL import Image

        Image.open(path).convert("RGB").quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


Picture = Callable[[Page, str], None]


@pytest.fixture
def picture() -> Picture:
    """Saves what a page looks like, if somebody wants pictures."""
    wanted = os.environ.get("PENSTOCK_SCREENSHOTS")

    def save(page: Page, name: str) -> None:
        if wanted:
            folder = Path(wanted)
            folder.mkdir(parents=True, exist_ok=True)
            page.wait_for_timeout(1500)  # until plots have a few points
            panel = page.locator(".vertex-panel")
            (panel if panel.count() else page).screenshot(path=folder / f"{name}.png")
            _shrink(folder / f"{name}.png")

    return save
