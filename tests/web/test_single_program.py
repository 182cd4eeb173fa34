"""The pages of a program that serves its own jobs, with jobs that really run, in one process."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.rest.served_jobs import served_jobs


def test_a_program_serves_the_pages_of_its_own_jobs(tmp_path, watchful):
    with served_jobs(tmp_path) as served:
        page = watchful.open(f"{served.url}/#/jobs/{served.running.job_id.hex}")
        expect(page.get_by_role("button", name=re.compile("Source: numbers"))).to_contain_text(
            re.compile(r"[1-9]\S*/s")
        )
        page.get_by_role("link", name="Checkpoints").click()
        expect(page.get_by_text("Latest checkpoint")).to_be_visible()
        page.get_by_role("button", name="Cancel", exact=True).click()
        page.get_by_role("button", name="Cancel the job").click()
        expect(page.locator(".job-title .badge")).to_have_text("Canceled")

        page.goto(f"{served.url}/#/jobs")
        page.get_by_role("link", name="broken").click()
        page.get_by_role("link", name=re.compile("Exceptions")).click()
        expect(page.locator(".failure-name").first).to_have_text("ZeroDivisionError")
        page.goto(f"{served.url}/#/submit")
        expect(page.get_by_text("Programs are not taken through these pages here.")).to_be_visible()
