"""What notebooks show, in a browser: readable in a light and a dark theme, without scripts, whatever the values are."""

import pytest

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.job.job_picture import picture as job_picture
from penstock.table import EnvironmentSettings, TableEnvironment
from tests.rest import scripted_jobs
from tests.web.test_pages import violations

EVIL = '<script>window.broken = true</script><img src="x" onerror="window.broken = true">'
THEMES = {"light": ("#ffffff", "#000000"), "dark": ("#111111", "#ffffff")}
"""Colours of pages and texts in JupyterLab."""


def shown() -> list[str]:
    env = StreamExecutionEnvironment().set_parallelism(2)
    env.from_collection([EVIL], Types.STRING()).name(EVIL).map(str).name("Map").key_by(len).reduce(max).print()
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table = t_env.from_elements([(1, EVIL), (2, None)], ["number", EVIL])
    lost = scripted_jobs.job(status="FAILED", failures=(scripted_jobs.failure(),), attempt=2)
    everything = [env, table, table.select(table.number + 1), t_env, t_env.execute_sql("SHOW TABLES"), table.explain()]
    return [*(one._repr_html_() for one in everything), *map(job_picture, (scripted_jobs.job(), lost))]


@pytest.mark.parametrize("theme", THEMES)
def test_everything_is_readable_and_harmless(watchful, theme):
    back, front = THEMES[theme]
    page = watchful.open("about:blank", colours=theme)
    style = f"body {{ background: {back}; color: {front}; --jp-layout-color0: {back} }}"
    page.set_content(f'<html lang="en"><title>n</title><style>{style}</style><main>{"".join(shown())}</main></html>')
    assert page.locator(".penstock").count() == 8
    assert page.evaluate("window.broken") is None
    assert page.locator("script, img").count() == 0
    assert page.locator("td", has_text="<script>window").count() == 1
    assert not violations(page)
