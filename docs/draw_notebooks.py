"""Draws the pictures of docs/notebooks.md: runs a notebook in a real kernel, and photographs its cells in Chromium.

    python docs/draw_notebooks.py             # all pictures, into docs/pictures/notebooks
    python docs/draw_notebooks.py plan table  # some of them

It needs nbclient, nbconvert, playwright and Chromium, which `make` installs except for Chromium itself.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from playwright.sync_api import Page, sync_playwright

FOLDER = Path(__file__).parent / "pictures" / "notebooks"
THEMES = ("light", "dark")
WIDTH = 1060
HIDDEN = "# hidden"
"""First line of a cell that prepares others and is in no picture."""

CELLS = {
    "start": f"""{HIDDEN}
import logging, time
from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment
from penstock.table import EnvironmentSettings, StreamTableEnvironment
logging.disable(logging.WARNING)
t_env = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment().set_parallelism(1))
t_env.execute_sql('''CREATE TABLE orders (
    id BIGINT, item STRING, price DECIMAL(8, 2), placed TIMESTAMP(3),
    WATERMARK FOR placed AS placed - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '100000',
        'fields.item.length' = '6', 'fields.price.min' = '1', 'fields.price.max' = '250', 'rows-per-second' = '100')
''')
t_env.get_config().set_local_timezone("Europe/Paris")
""",
    "plan": """
env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
pairs = Types.TUPLE([Types.STRING(), Types.INT()])
orders = env.from_collection([("pen", 3), ("ink", 1), ("pen", 10)], pairs).name("Orders")
returns = env.from_collection([("pen", -2), ("ink", -1)], pairs).name("Returns")
large = orders.filter(lambda order: order[1] > 2).name("Large orders")
totals = large.union(returns).key_by(lambda pair: pair[0]).sum(1).name("Totals")
totals.print()
orders.map(str).name("As text").print().name("All orders")
env
""",
    "table": """
t_env.from_path("orders")
""",
    "eager": """
t_env.get_config().set("table.display.eager", "true").set("table.display.max-rows", "5")
t_env.from_path("orders")
""",
    "values": """
t_env.sql_query('''SELECT * FROM (VALUES
    (1, 'pen', 2.50, TO_TIMESTAMP_LTZ(1772357400000, 3), X'01FF', ROW('Rue du Nord', 5)),
    (2, '<b>ink</b>', NULL, TO_TIMESTAMP_LTZ(1782898200000, 3), X'',
     ROW('A lane whose name goes on and on, so long that no page is wide enough for all of it', 7))
) AS orders(id, item, price, placed, tag, address)''')
""",
    "explain": """
t_env.sql_query("SELECT item, SUM(price) AS total FROM orders WHERE price > 9 GROUP BY item").explain()
""",
    "result": """
env.execute("totals of orders")
""",
    "counting": f"""{HIDDEN}
def counting():
    counts = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    counts.enable_checkpointing(1000)
    ticks = counts.generate(lambda n: (n % 10, 1), rate=20000, type_info=Types.TUPLE([Types.LONG(), Types.LONG()]))
    pairs = ticks.rebalance().map(lambda pair: pair, Types.TUPLE([Types.LONG(), Types.LONG()])).name("Enrich")
    pairs.key_by(lambda pair: pair[0], Types.LONG()).sum(1).uid("counts").name("Counts").discard().name("Archive")
    return counts.execute_async("counting")

counting_job = counting()
time.sleep(15)
""",
    "savepoint": """
counting_job.stop_with_savepoint(False, "savepoints").result()
""",
    "live": """
counts = t_env.execute_sql("SELECT MOD(id, 4) AS branch, COUNT(*) AS orders, SUM(price) AS total "
                           "FROM orders GROUP BY MOD(id, 4)")
counts
""",
    "after-live": f"{HIDDEN}\ntime.sleep(20); counts._live.picture.stop(); counts._live.stop()",
    "job": """
job = counting()
job
""",
    "after-job": f"""{HIDDEN}
while "in 0/s" in job._repr_mimebundle_()["text/html"].partition("Enrich")[2]:
    time.sleep(1)
time.sleep(10)
""",
}


def run(names: list[str]) -> nbformat.NotebookNode:
    """Run the cells in a kernel of their own, and return the notebook with their outputs."""
    cells = [nbformat.v4.new_code_cell(CELLS[name].strip(), id=name) for name in names]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    return notebook


def export(notebook: nbformat.NotebookNode, theme: str) -> str:
    """Return the notebook as a page with the styles of JupyterLab."""
    page, _ = HTMLExporter(theme=theme).from_notebook_node(notebook)
    return str(page)


def take(page: Page, html: str, names: list[str], theme: str) -> None:
    """Save a picture of each cell that is not hidden."""
    page.route("http*://**", lambda route: route.abort())  # fonts and scripts of the page are not needed
    page.set_content(html)
    for name in names:
        if CELLS[name].startswith(HIDDEN):
            continue
        cell = page.locator(f"[id='cell-id={name}']")
        path = FOLDER / f"{name}-{theme}.png"
        cell.screenshot(path=path)
        shrink(path)


def shrink(path: Path) -> None:
    """Reduce the colours of a picture. Without Pillow the file is larger."""
    try:
        from PIL import Image
    except ImportError:
        return
    Image.open(path).convert("RGB").quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def main(wanted: list[str]) -> None:
    names = ["start", *(wanted or [name for name in CELLS if name != "start"])]
    FOLDER.mkdir(parents=True, exist_ok=True)
    notebook = run(names)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for theme in THEMES:
            page = browser.new_page(viewport={"width": WIDTH, "height": 900}, device_scale_factor=2)
            take(page, export(notebook, theme), names, theme)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
