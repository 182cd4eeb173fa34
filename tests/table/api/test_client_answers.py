"""The words in which the SQL client answers, and listings of functions, views and jars."""

import re

import pytest

from penstock.errors import UnsupportedOperation, ValidationException
from penstock.service.cli.exit_codes import CommandFailed
from penstock.service.cli.sql.sql_client import SqlClient
from penstock.table import DataTypes, EnvironmentSettings, TableEnvironment
from penstock.table.catalog import CatalogFunction, ObjectPath
from penstock.table.expression.function_declarations import udf
from penstock.testing import in_process

DOUBLE = udf(lambda x: 2 * x, input_types=[DataTypes.BIGINT()], result_type=DataTypes.BIGINT(), deterministic=False)
T = "CREATE TABLE t (a INT, b STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '1')"


@pytest.fixture
def t_env():
    with in_process():
        made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        made.execute_sql(T)
        yield made


def column(t_env, statement, place=0):
    with t_env.execute_sql(statement).collect() as rows:
        return [row[place] for row in rows]


def script(tmp_path, *statements):
    table = f"CREATE TABLE s (a INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/s', 'format' = 'csv')"
    with in_process():
        SqlClient({"parallelism.default": "2"}).run_script(";\n".join([table, *statements, ""]))


# --- words ---
def test_the_client_says_what_became_of_a_statement(tmp_path, capsys):
    script(tmp_path, "SET 'table.dml-sync' = 'true'", "INSERT INTO s VALUES (1)", "SELECT * FROM s")
    told = capsys.readouterr().out.splitlines()
    assert told[:3] == ["[INFO] Execute statement succeeded."] * 2 + [
        "[INFO] Complete execution of the SQL update statement."
    ]
    assert told[-1] == "Received a total of 1 row"


def test_the_client_gives_the_id_of_a_job_that_goes_on(tmp_path, capsys):
    script(tmp_path, "INSERT INTO s VALUES (1)")
    told = capsys.readouterr().out.splitlines()
    assert told[1] == "[INFO] SQL update statement has been successfully submitted to the cluster:"
    assert told[2].startswith("Job ID: ") and len(told[2]) == 40


def test_a_script_may_ask_for_help_and_leave(tmp_path, capsys):
    script(tmp_path, "HELP", "clear", "QUIT", "SELECT nothing FROM nowhere")
    told = capsys.readouterr().out
    assert "Statements end with a semicolon" in told and "\x1b" not in told


def test_a_script_may_gather_inserts(tmp_path, capsys):
    sync = "SET 'table.dml-sync' = 'true'"
    script(tmp_path, sync, "BEGIN STATEMENT SET", "INSERT INTO s VALUES (1)", "END", "SELECT * FROM s")
    assert capsys.readouterr().out.splitlines()[-1] == "Received a total of 1 row"


def test_the_client_says_how_long_a_query_took_when_asked(tmp_path, capsys):
    script(tmp_path, "SET 'sql-client.display.print-time-cost' = 'true'", "SHOW TABLES")
    assert re.fullmatch(r"\(\d+\.\d\d s\)", capsys.readouterr().out.splitlines()[-1])
    script(tmp_path, "SET 'sql-client.verbose' = 'true'", "SHOW TABLES")
    assert capsys.readouterr().out.splitlines()[-1] == "1 row in set"


def test_a_verbose_client_shows_the_traceback_of_an_error(tmp_path):
    with pytest.raises(CommandFailed, match="SELECT 1 / nothing\n") as brief:
        script(tmp_path, "SELECT 1 / nothing")
    assert "Traceback" not in str(brief.value)
    with pytest.raises(CommandFailed, match="Traceback"):
        script(tmp_path, "SET 'sql-client.verbose' = 'true'", "SELECT 1 / nothing")


def test_rows_of_values_are_written_in_their_order(tmp_path, capsys):
    values = ", ".join(f"({n})" for n in range(9))
    script(tmp_path, "SET 'table.dml-sync' = 'true'", f"INSERT INTO s VALUES {values}", "SELECT * FROM s")
    rows = [line.split("|")[2].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("| +I")]
    assert rows == [str(n) for n in range(9)]


def test_reset_returns_options_to_those_of_the_start(capsys):
    client = SqlClient({"parallelism.default": "2", "rest.port": "8081"})
    client.environment.execute_sql("SET 'parallelism.default' = '3'")
    client.environment.execute_sql("SET 'table.exec.state.ttl' = '1 h'")
    client.environment.execute_sql("RESET 'parallelism.default'")
    assert column(client.environment, "SET", 1) == ["2", "8081", "1 h"]
    client.environment.execute_sql("SET 'rest.port' = '1'")
    client.environment.execute_sql("RESET")
    assert column(client.environment, "SET", 1) == ["2", "8081"]


# --- functions ---
@pytest.mark.filterwarnings("ignore:function .* cannot run here")
def test_a_function_of_java_is_an_entry_that_no_query_can_call(t_env):
    t_env.execute_sql("CREATE FUNCTION f AS 'com.example.F' USING JAR '/lib/f.jar'")
    t_env.execute_sql("CREATE TEMPORARY FUNCTION g AS 'com.example.G' LANGUAGE SCALA")
    t_env.create_java_temporary_system_function("h", "com.example.H")
    assert column(t_env, "SHOW USER FUNCTIONS") == ["f", "g", "h"]
    told = [*zip(column(t_env, "DESCRIBE FUNCTION f"), column(t_env, "DESCRIBE FUNCTION f", 1), strict=True)]
    assert told[2:] == [
        ("class name", "com.example.F"),
        ("function language", "JAVA"),
        ("resource uris", "[ResourceUri{resourceType=JAR, uri='/lib/f.jar'}]"),
    ]
    for name in "fgh":
        with pytest.raises(UnsupportedOperation, match=f"function {name}: 'com.example.{name.upper()}' is in"):
            t_env.execute_sql(f"SELECT {name}(b) FROM t")
    t_env.execute_sql("ALTER FUNCTION f AS 'com.example.Other'")
    assert column(t_env, "DESCRIBE FUNCTION f", 1)[2] == "com.example.Other"
    t_env.execute_sql("DROP FUNCTION f")
    assert column(t_env, "SHOW USER FUNCTIONS") == ["g", "h"]


def test_a_function_that_a_catalog_knows_by_its_name_is_imported(t_env):
    entry = CatalogFunction.create_instance(f"{__name__}.DOUBLE")
    t_env.get_catalog("default_catalog").create_function(ObjectPath("default_database", "twice"), entry)
    assert column(t_env, "SELECT twice(CAST(21 AS BIGINT))") == [42]


def test_a_function_of_java_warns(t_env):
    with pytest.warns(UserWarning, match="function f: 'com.example.F' is in JAVA, and JAVA cannot run here"):
        t_env.execute_sql("CREATE FUNCTION f AS 'com.example.F'")


def test_functions_are_listed_by_database(t_env):
    t_env.execute_sql("CREATE DATABASE other")
    t_env.create_temporary_function("here", DOUBLE)
    t_env.create_temporary_function("other.there", DOUBLE)
    t_env.create_temporary_system_function("anywhere", DOUBLE)
    assert column(t_env, "SHOW USER FUNCTIONS") == ["anywhere", "here"]
    assert column(t_env, "SHOW USER FUNCTIONS IN other") == ["anywhere", "there"]
    assert column(t_env, "SHOW USER FUNCTIONS FROM default_catalog.other ILIKE 'TH%'") == ["there"]
    assert "there" in column(t_env, "SHOW FUNCTIONS FROM other")


def test_a_described_function_has_its_class_and_its_signature(t_env):
    t_env.create_temporary_function("dbl", DOUBLE)
    found = {row[0]: row[1] for row in t_env.execute_sql("DESCRIBE FUNCTION EXTENDED dbl").collect()}
    assert found == {
        "is system function": "false",
        "is temporary": "true",
        "class name": "dbl",
        "function language": "PYTHON",
        "resource uris": "[]",
        "kind": "SCALAR",
        "requirements": "[]",
        "is deterministic": "false",
        "supports constant folding": "false",
        "signature": "default_catalog.default_database.dbl(arg0 => BIGINT)",
    }


def test_a_temporary_function_is_not_altered(t_env):
    t_env.create_temporary_function("dbl", DOUBLE)
    with pytest.raises(ValidationException, match="Alter temporary catalog function is not supported"):
        t_env.execute_sql("ALTER TEMPORARY FUNCTION dbl AS 'operator.neg' LANGUAGE PYTHON")


# --- jars ---
def test_jars_are_listed_and_have_no_effect(t_env):
    with pytest.warns(UserWarning, match="jars have no effect here: /a.jar"):
        t_env.execute_sql("ADD JAR '/a.jar'")
    assert column(t_env, "SHOW JARS") == ["/a.jar"]
    t_env.execute_sql("REMOVE JAR '/a.jar'")
    assert column(t_env, "SHOW JARS") == []
    with pytest.raises(ValidationException, match="no such jar"):
        t_env.execute_sql("REMOVE JAR '/a.jar'")


# --- views ---
D = "`default_catalog`.`default_database`"
EXPANDED = [
    ("select * from t", f"SELECT `t`.`a`, `t`.`b`\nFROM {D}.`t` AS `t`"),
    (
        "SELECT x.a + 1 AS n FROM t AS x WHERE b LIKE 'k%'",
        f"SELECT `x`.`a` + 1 AS `n`\nFROM {D}.`t` AS `x`\nWHERE `x`.`b` LIKE 'k%'",
    ),
    (
        "SELECT b, dbl(CAST(a AS BIGINT)) AS d, COUNT(*) AS c FROM t GROUP BY b, a HAVING COUNT(*) > 1",
        f"SELECT `t`.`b`, {D}.dbl(CAST(`t`.`a` AS BIGINT)) AS `d`, COUNT(*) AS `c`\nFROM {D}.`t` AS `t`\n"
        "GROUP BY `t`.`b`, `t`.`a`\nHAVING COUNT(*) > 1",
    ),
    (
        "SELECT q.a, y.* FROM (SELECT a FROM t) q JOIN t AS y (k, v) ON q.a = k",
        f"SELECT `q`.`a`, `y`.`k`, `y`.`v`\nFROM (SELECT `t`.`a`\nFROM {D}.`t` AS `t`) AS `q`\n"
        f"INNER JOIN {D}.`t` AS `y` (`k`, `v`) ON `q`.`a` = `y`.`k`",
    ),
    ("SELECT a FROM t UNION ALL SELECT 1", f"SELECT `t`.`a`\nFROM {D}.`t` AS `t`\nUNION ALL\nSELECT 1"),
]


@pytest.mark.parametrize(("query", "text"), EXPANDED)
def test_a_view_is_shown_with_full_names_and_means_the_same_as_text(t_env, query, text):
    t_env.create_temporary_function("dbl", DOUBLE)
    t_env.execute_sql(f"CREATE VIEW v AS {query}")
    (shown,) = column(t_env, "SHOW CREATE VIEW v")
    assert shown.partition(")\nAS ")[2] == text + "\n"
    names = t_env.from_path("v").get_schema().get_field_names()
    t_env.execute_sql("DROP VIEW v")
    t_env.execute_sql(shown)
    assert t_env.from_path("v").get_schema().get_field_names() == names


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, COUNT(*) OVER (PARTITION BY a ORDER BY PROCTIME()) AS c FROM t",
        "SELECT JSON_VALUE(b, '$.x' RETURNING INT) AS n FROM t",
        "SELECT a FROM t WHERE a IN (SELECT 1)",
        "SELECT q.n FROM t CROSS JOIN LATERAL (SELECT t.a + 1 AS n) AS q",
    ],
)
def test_a_query_without_a_full_form_is_shown_as_it_was_written(t_env, query):
    t_env.execute_sql(f"CREATE VIEW v AS {query}")
    assert column(t_env, "SHOW CREATE VIEW v")[0].endswith(f"AS {query}\n")


def test_a_statement_that_fails_ends_a_script(tmp_path):
    with pytest.raises(CommandFailed, match="SELECT b FROM s"):
        script(tmp_path, "SELECT b FROM s", "SELECT a FROM s")


# --- moments ---
@pytest.mark.parametrize("text", ["TIMESTAMP '2024-02-29 10:11:12.1234567'", "TIME '10:11:12.000000001'"])
def test_a_literal_below_a_microsecond_is_refused(t_env, text):
    with pytest.raises(ValidationException, match=r"line 1, column 8: TIME.* is more precise than a microsecond"):
        t_env.sql_query(f"SELECT {text}")
    t_env.sql_query("SELECT TIMESTAMP '2024-02-29 10:11:12.123456000'")


def test_a_query_warns_of_columns_whose_last_digits_are_cut_off(t_env, tmp_path):
    (tmp_path / "a.json").write_text('{"ts": "2024-02-29 10:11:12.123456789"}')
    options = f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json'"
    t_env.execute_sql(f"CREATE TABLE fine (ts TIMESTAMP(9)) WITH ({options})")
    with pytest.warns(UserWarning, match=r"fine: moments have microseconds.*: ts TIMESTAMP\(9\)"):
        assert str(column(t_env, "SELECT ts FROM fine")[0]) == "2024-02-29 10:11:12.123456"


def test_a_cast_refuses_a_text_below_a_microsecond_unless_its_digits_are_dropped(t_env):
    text = "'2024-02-29 10:11:12.1234567'"
    assert str(column(t_env, f"SELECT CAST({text} AS TIMESTAMP(6))")[0]) == "2024-02-29 10:11:12.123456"
    with pytest.raises(Exception, match="more precise than a microsecond"):
        column(t_env, f"SELECT CAST({text} AS TIMESTAMP(9))")
