"""Tables and results in a real Jupyter kernel: what is below the cells, and what may still be read afterwards."""

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = {
    "start": """
from penstock.table import EnvironmentSettings, TableEnvironment
from penstock.testing import in_process

in_this_process = in_process(epoch_records=10)
in_this_process.__enter__()
t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.get_config().set("parallelism.default", "1")
fields = "'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '40'"
t_env.execute_sql(f"CREATE TABLE orders (id BIGINT, item STRING) WITH ('connector' = 'datagen', {fields})")
t_env.execute_sql("CREATE TABLE endless (id BIGINT) WITH ('connector' = 'datagen')")
orders = t_env.from_path("orders")
""",
    "schema": "orders",
    "rows": """
t_env.get_config().set("table.display.eager", "true").set("table.display.max-rows", "5")
t_env.sql_query("SELECT id, '<script>alert(1)</script>' AS bad FROM orders")
""",
    "live": """
counts = t_env.execute_sql("SELECT MOD(id, 2) AS k, COUNT(*) AS n FROM orders GROUP BY MOD(id, 2)")
counts
""",
    "wait": "counts._live.wait()",
    "again": "counts",
    "read": "print(sorted(map(tuple, counts.collect()))[:1], counts._live.rows.error)",
    "statement": 't_env.execute_sql("SHOW TABLES")',
    "endless": 'following = t_env.execute_sql("SELECT id, id AS same FROM endless").live(rows=3, seconds=0.05)',
    "stop": """
import threading, time
while not following.rows.is_over and len(following._held) <= 3:
    time.sleep(0.01)
following.stop()
assert following.wait(60)
assert not [t for t in threading.enumerate() if t.name in ("penstock widget", "penstock live table") and t.is_alive()]
""",
    "stopped": "following.bundle()['text/plain'].splitlines()[0]",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        cells = [nbformat.v4.new_code_cell(text, id=name) for name, text in CELLS.items()]
        notebook = nbformat.v4.new_notebook(cells=cells)
        NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return {cell.id: [one for one in cell.outputs if one.output_type != "stream"] for cell in notebook.cells} | {
        "said": "".join(one.text for cell in notebook.cells for one in cell.outputs if one.output_type == "stream")
    }


def html(outputs, name):
    (shown,) = outputs[name]
    return shown.data["text/html"]


def test_a_table_shows_its_schema(outputs):
    assert "<td>item</td><td>STRING</td>" in html(outputs, "schema")


def test_a_bounded_table_shows_rows_if_the_option_says_so(outputs):
    shown = html(outputs, "rows")
    assert shown.count("<tr>") == 1 + 5 and "the first 5 rows; there are more" in shown
    assert "&lt;script&gt;" in shown and "<script" not in shown


def test_a_query_shows_its_rows_until_it_ends(outputs):
    shown = html(outputs, "live")
    assert "FINISHED" in shown and "2 rows · " in shown
    assert '<td class="number">0</td><td class="number">20</td>' in shown
    assert html(outputs, "again") == shown, "it is shown again without being read again"


def test_the_rows_that_were_shown_can_still_be_read(outputs):
    assert "[(0, 1)] None" in outputs["said"]


def test_the_result_of_a_statement_is_a_table(outputs):
    assert "<td>orders</td>" in html(outputs, "statement")


def test_a_table_that_never_ends_is_followed_until_it_is_stopped(outputs):
    shown = html(outputs, "endless")
    assert shown.count("<tr>") == 1 + 3 and "the newest 3 rows" in shown
    assert "query is CANCELED" in outputs["stopped"][0].data["text/plain"]
