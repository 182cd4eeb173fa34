"""Tables, results and environments show themselves. A job runs only where somebody has asked for one."""

import datetime
import xml.etree.ElementTree as ET
from decimal import Decimal

import pytest

from penstock.common import Row
from penstock.errors import InvalidArgument, TableException, ValidationException
from penstock.service.launch.submission import with_defaults
from penstock.table import DataTypes, EnvironmentSettings, TableEnvironment, TableResult
from penstock.table.expression.expression_functions import col
from penstock.testing import in_process

FIELDS = """id BIGINT COMMENT 'the number', item STRING, ts TIMESTAMP(3), more AS id + 1,
    WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, PRIMARY KEY (id) NOT ENFORCED"""
SEQUENCE = "'connector' = 'datagen', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{}'"


class Jobs:
    """Counts the jobs that start."""

    def __init__(self):
        self.count = 0

    def __call__(self, job):
        self.count += 1
        self.last = job


@pytest.fixture
def jobs():
    counted = Jobs()
    with in_process(), with_defaults(on_start=counted):
        yield counted


@pytest.fixture(params=["streaming", "batch"])
def t_env(jobs, request):
    mode = EnvironmentSettings.in_batch_mode() if request.param == "batch" else EnvironmentSettings.in_streaming_mode()
    made = TableEnvironment.create(mode)
    made.get_config().set("table.exec.batch.engine", "penstock").set("parallelism.default", "1")
    made.execute_sql(f"CREATE TABLE orders ({FIELDS}) WITH ({SEQUENCE.format(30)})")
    return made


@pytest.fixture
def streaming(jobs):
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    made.get_config().set("parallelism.default", "1")
    made.execute_sql(f"CREATE TABLE orders ({FIELDS}) WITH ({SEQUENCE.format(30)})")
    made.execute_sql("CREATE TABLE endless (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100000')")
    return made


def drawn(shown):
    return ET.fromstring(shown._repr_html_())


def cells(shown):
    return [["".join(cell.itertext()) for cell in row.iter("td")] for row in drawn(shown).iter("tr")][1:]


def said(shown):
    return "".join(drawn(shown).itertext())


# --- without a job ---
def test_a_table_shows_its_schema_and_runs_nothing(t_env, jobs):
    table = t_env.from_path("orders")
    assert repr(table) == f"Table {table.get_resolved_schema()}"
    assert cells(table) == [
        ["id", "BIGINT NOT NULL", "primary key, the number"],
        ["item", "STRING", ""],
        ["ts", "TIMESTAMP(3)", "event time, watermark `ts` - INTERVAL '1' SECOND"],
        ["more", "BIGINT NOT NULL", "AS `id` + 1"],
    ]
    assert table._repr_mimebundle_() == {"text/html": table._repr_html_(), "text/plain": repr(table)}
    assert "show() prints the first rows" in said(table)
    assert jobs.count == 0


def test_a_table_of_values_shows_its_rows_and_runs_nothing(t_env, jobs):
    table = t_env.from_elements([(number, f"item {number}") for number in range(25)], ["id", "item"])
    assert cells(table) == [[str(number), f"item {number}"] for number in range(20)]
    assert "the first 20 rows; there are more" in said(table)
    assert cells(t_env.sql_query("SELECT b, a FROM (VALUES (1, 'x'), (2, NULL)) AS t(a, b)")) == [
        ["x", "1"],
        ["NULL", "2"],
    ]
    assert said(t_env.sql_query("SELECT a + 1 AS b FROM (VALUES 1) AS t(a)")).count("INT NOT NULL") == 1
    assert jobs.count == 0


def test_every_kind_of_value_is_shown_well(streaming, jobs):
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000)
    kinds = {
        "script": (DataTypes.STRING(), "<script>alert(1)</script>", "<script>alert(1)</script>"),
        "none": (DataTypes.INT(), None, "NULL"),
        "text": (DataTypes.STRING(), "NULL", "NULL"),
        "nan": (DataTypes.DOUBLE(), float("nan"), "NaN"),
        "tiny": (DataTypes.DOUBLE(), 1e-9, "1.0E-9"),
        "decimal": (DataTypes.DECIMAL(10, 3), Decimal("12345.600"), "12345.600"),
        "bytes": (DataTypes.BYTES(), b"\x00\xff", "x'00ff'"),
        "time": (DataTypes.TIMESTAMP(3), moment, "2026-01-02 03:04:05.678"),
        "moment": (DataTypes.TIMESTAMP_LTZ(3), moment.replace(tzinfo=datetime.UTC), "2026-01-02 04:04:05.678"),
        "row": (DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.STRING())]),
                Row(1, None), "(1, NULL)"),
        "array": (DataTypes.ARRAY(DataTypes.INT()), [1, None], "[1, NULL]"),
        "map": (DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()), {"a": 1}, "{a=1}"),
        "lines": (DataTypes.STRING(), "one\ntwo", "one↵two"),
    }  # fmt: skip
    streaming.get_config().set_local_timezone("Europe/Paris")
    schema = DataTypes.ROW([DataTypes.FIELD(name, kind) for name, (kind, _, _) in kinds.items()])
    table = streaming.from_elements([tuple(value for _, value, _ in kinds.values())], schema)
    assert cells(table) == [[text for _, _, text in kinds.values()]]
    assert [one.text for one in drawn(table).iter("i")] == ["NULL"], "the text NULL is no NULL"
    assert "TIMESTAMP_LTZ(3) in Europe/Paris" in said(table)
    assert "<script>" not in table._repr_html_()
    # A query that runs shows the same.
    streaming.get_config().set("table.display.eager", "true")
    assert cells(table.filter(col("text") == "NULL")) == cells(table)
    assert jobs.count == 1


# --- with a job ---
def test_with_the_option_a_notebook_shows_first_rows(t_env, jobs):
    t_env.get_config().set("table.display.eager", "true").set("table.display.max-rows", "3")
    table = t_env.from_path("orders").select(col("id"), col("more"))
    assert repr(table).startswith("Table (") and jobs.count == 0, "repr never runs a query"
    assert cells(table) == [["1", "2"], ["2", "3"], ["3", "4"]]
    assert "the first 3 rows; there are more" in said(table)
    before = jobs.count
    bundle = table._repr_mimebundle_()
    assert jobs.count == before + 1, "both forms are from one run"
    assert "|  3 |    4 |" in bundle["text/plain"] and "<td" in bundle["text/html"]
    assert jobs.last.status().is_terminal_state()


def test_first_rows_of_an_aggregate_are_final(t_env, jobs):
    t_env.get_config().set("table.display.eager", "true")
    counts = t_env.sql_query("SELECT MOD(id, 2) AS k, COUNT(*) AS n FROM orders GROUP BY MOD(id, 2)")
    assert sorted(cells(counts)) == [["0", "15"], ["1", "15"]]
    assert "2 rows" in said(counts)


def test_an_endless_table_is_not_read_for_a_notebook(streaming, jobs):
    streaming.get_config().set("table.display.eager", "true")
    assert "never ends" in said(streaming.from_path("endless"))
    assert jobs.count == 0


def test_an_error_of_the_query_is_shown_with_the_schema(streaming):
    streaming.get_config().set("table.display.eager", "true")
    table = streaming.sql_query("SELECT CAST(item AS INT) AS number FROM orders ORDER BY item")
    assert "number" in said(table) and drawn(table).find(".//div[@class='failure']") is not None
    assert "text/plain" in table._repr_mimebundle_()


# --- show ---
def test_show_prints_first_rows(t_env, jobs, capsys):
    t_env.from_path("orders").select(col("id"), col("more")).show(2)
    assert capsys.readouterr().out == (
        "+----+------+\n| id | more |\n+----+------+\n|  1 |    2 |\n|  2 |    3 |\n+----+------+\n"
        "the first 2 rows; there are more\n"
    )
    assert jobs.last.status().is_terminal_state()


def test_show_cuts_texts_but_no_numbers(streaming, capsys):
    table = streaming.from_elements([(10**17, "x" * 30, None)], ["a", "b", "c"])
    table.show()
    assert f"| {10**17} | {'x' * 17}... | <NULL> |" in capsys.readouterr().out
    table.show(truncate=5)
    assert f"| {10**17} | xx... | <NULL> |" in capsys.readouterr().out
    table.show(truncate=False)
    assert "x" * 30 in capsys.readouterr().out
    table.show(vertical=True)
    assert capsys.readouterr().out == f"-RECORD 0\n a | {10**17}\n b | {'x' * 17}...\n c | <NULL>\n1 row\n"
    table.show(0)
    assert "Empty set" in capsys.readouterr().out


def test_show_reads_no_more_of_an_endless_table_than_it_prints(streaming, jobs, capsys):
    streaming.from_path("endless").show(4)
    assert capsys.readouterr().out.count("\n") == 9
    assert jobs.last.wait(60) and jobs.last.status().name == "CANCELED"


def test_show_refuses_an_endless_table_whose_rows_change(streaming, jobs):
    counts = streaming.sql_query("SELECT id, COUNT(*) AS n FROM endless GROUP BY id")
    with pytest.raises(TableException, match=r"endless, which never ends.*execute\(\).live\(\)"):
        counts.show()
    assert jobs.count == 0


@pytest.mark.parametrize("wrong", [{"n": -1}, {"truncate": 0}])
def test_show_refuses_numbers_that_mean_nothing(streaming, wrong):
    with pytest.raises(ValidationException, match="at least"):
        streaming.from_path("orders").show(**wrong)
    with pytest.raises(InvalidArgument):
        streaming.from_path("orders").show("ten")


def test_the_waiting_program_is_not_touched(streaming, capsys):
    env = streaming._env.set_parallelism(1)
    env.from_collection([1]).map(str).print()
    before = env.explain()
    streaming.from_path("orders").show(1)
    assert env.explain() == before


# --- results and environments ---
def test_a_result_of_a_statement_shows_its_rows_and_keeps_them(streaming):
    result = streaming.execute_sql("SHOW TABLES")
    assert cells(result) == [["endless"], ["orders"]]
    assert repr(result).splitlines()[3:5] == ["|    endless |", "|     orders |"]
    assert [row[0] for row in result.collect()] == ["endless", "orders"]
    assert repr(streaming.execute_sql("USE CATALOG default_catalog")) == "TableResult: OK"
    assert said(streaming.execute_sql("USE CATALOG default_catalog")).endswith("OK")


def test_a_result_of_a_query_shows_its_job(streaming):
    result = streaming.execute_sql("SELECT id FROM orders")
    job = result.get_job_client().get_job_id()
    assert repr(result).startswith(f"TableResult (id BIGINT NOT NULL): job {job} is ")
    assert "live() shows its rows" in said(result)
    assert len(list(result.collect())) == 30
    assert "its rows have been read" in said(result)


def test_many_known_rows_are_cut():
    result = TableResult.of(["n"], [DataTypes.INT()], [(number,) for number in range(1200)])
    assert len(cells(result)) == 1000 and "the first 1,000 rows of 1,200" in said(result)


def test_an_environment_shows_what_it_knows(streaming):
    streaming.create_temporary_view("<views>", streaming.from_path("orders"))
    assert repr(streaming) == (
        "TableEnvironment in STREAMING mode, in default_catalog.default_database\n"
        "  view <views>\n  table endless\n  table orders"
    )
    assert cells(streaming) == [["view", "<views>"], ["table", "endless"], ["table", "orders"]]
    empty = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    assert "no tables or functions yet" in said(empty) and "BATCH" in said(empty)


def test_an_explanation_has_a_graph_of_operators(streaming):
    streaming.get_config().set("parallelism.default", "2")
    explained = streaming.explain_sql("SELECT item, COUNT(*) FROM orders GROUP BY item")
    assert explained.startswith("== Abstract Syntax Tree ==")
    found = drawn(explained)
    titles = [one.text for one in found.iter("summary")]
    assert titles == ["Abstract Syntax Tree", "Optimized Physical Plan", "Optimized Execution Plan"]
    assert [one.text for one in found.iter("pre")] == [
        part.partition(" ==\n")[2].strip("\n") for part in explained.split("== ")[1:] if " ==\n" in part
    ]
    assert len(list(found.iter("{http://www.w3.org/2000/svg}rect"))) >= 2
