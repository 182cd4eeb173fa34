"""Statements as data: DDL, SHOW and settings say what the text says."""

import pytest

from penstock.table.sql import parse, parse_expression, parse_type
from penstock.table.sql.parse import statements as st
from penstock.table.types.data_types import DataTypes


def only(text: str) -> st.Statement:
    (statement,) = parse(text)
    assert statement.text == text.strip().rstrip(";").strip()
    return statement


TABLE = """
CREATE TEMPORARY TABLE IF NOT EXISTS cat.db.t (
  id INT NOT NULL COMMENT 'the id',
  `at` TIMESTAMP(3) METADATA FROM 'timestamp' VIRTUAL,
  part BIGINT METADATA,
  r ROW<a INT, b ARRAY<STRING NOT NULL>>,
  up AS UPPER(name) || 'x' COMMENT 'loud',
  WATERMARK FOR `at` AS `at` - INTERVAL '5' SECOND,
  CONSTRAINT pk PRIMARY KEY (id) NOT ENFORCED
) COMMENT 'a table'
PARTITIONED BY (id)
WITH ('connector' = 'kafka', 'it''s' = 'x')
"""


def test_create_table_with_everything() -> None:
    table = only(TABLE)
    assert isinstance(table, st.CreateTable)
    assert (table.path, table.temporary, table.if_not_exists) == (("cat", "db", "t"), True, True)
    assert (table.comment, table.partitioned) == ("a table", ("id",))
    assert table.options == (("connector", "kafka"), ("it's", "x"))
    assert table.primary_key == st.PrimaryKey(("id",), "pk")
    by_name = {column.name: column for column in table.columns}
    assert by_name["id"] == st.ColumnSpec("id", DataTypes.INT().not_null(), comment="the id")
    at = by_name["at"]
    assert (at.kind, at.metadata_key, at.virtual) == (st.METADATA, "timestamp", True)
    assert (by_name["part"].metadata_key, by_name["part"].virtual) == (None, False)
    assert str(by_name["r"].type.as_sql()) == "ROW<`a` INT, `b` ARRAY<STRING NOT NULL>>"  # type: ignore[union-attr]
    up = by_name["up"]
    assert (up.type, up.kind, up.comment) == (None, st.COMPUTED, "loud")
    assert up.expression is not None and up.expression.text == "UPPER(name) || 'x'"
    assert str(up.expression) == "UPPER(`name`) || 'x'"
    assert table.watermark is not None and table.watermark.column == ("at",)
    assert str(table.watermark.expression) == "`at` - INTERVAL '5' SECOND"


def test_create_table_like_and_as() -> None:
    like = only(
        "CREATE TABLE t (x INT) WITH ('a' = 'b') LIKE base (INCLUDING ALL OVERWRITING OPTIONS EXCLUDING GENERATED)"
    )
    assert isinstance(like, st.CreateTable)
    choices = (("INCLUDING", "ALL"), ("OVERWRITING", "OPTIONS"), ("EXCLUDING", "GENERATED"))
    assert like.like == st.Like(("base",), choices)
    made = only("CREATE TABLE t WITH ('a' = 'b') AS SELECT 1 AS x")
    assert isinstance(made, st.CreateTableAs) and made.table.options == (("a", "b"),)
    named = only("CREATE TABLE t (b, a) AS SELECT a, b FROM s")
    assert isinstance(named, st.CreateTableAs) and named.names == ("b", "a")
    replaced = only("CREATE OR REPLACE TABLE t AS SELECT 1 AS x")
    assert isinstance(replaced, st.CreateTableAs) and replaced.replace


def test_views_functions_databases_catalogs() -> None:
    view = only("CREATE TEMPORARY VIEW v (a, b) COMMENT 'c' AS SELECT 1, 2")
    assert isinstance(view, st.CreateView)
    assert (view.columns, view.query_text, view.comment, view.temporary) == (("a", "b"), "SELECT 1, 2", "c", True)
    jar = "ResourceUri{resourceType=JAR, uri='x.jar'}"
    function = only("CREATE TEMPORARY SYSTEM FUNCTION IF NOT EXISTS f AS 'm.f' LANGUAGE PYTHON USING JAR 'x.jar'")
    assert function == st.CreateFunction(("f",), "m.f", "PYTHON", True, True, True, (jar,), text=function.text)
    database = only("CREATE DATABASE IF NOT EXISTS c.d COMMENT 'x' WITH ('k' = 'v')")
    assert database == st.CreateDatabase(("c", "d"), "x", (("k", "v"),), True, text=database.text)
    catalog = only("CREATE CATALOG c WITH ('type' = 'generic_in_memory')")
    assert catalog == st.CreateCatalog("c", (("type", "generic_in_memory"),), text=catalog.text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DROP TABLE IF EXISTS a.b", st.Drop("TABLE", ("a", "b"), True)),
        ("DROP TEMPORARY VIEW v", st.Drop("VIEW", ("v",), temporary=True)),
        ("DROP TEMPORARY SYSTEM FUNCTION IF EXISTS f", st.Drop("FUNCTION", ("f",), True, True, True)),
        ("DROP DATABASE d CASCADE", st.Drop("DATABASE", ("d",), cascade=True)),
        ("ALTER TABLE t RENAME TO u", st.Alter("TABLE", ("t",), st.RenameTo(("u",)))),
        ("ALTER TABLE t RENAME a TO b", st.Alter("TABLE", ("t",), st.RenameColumn("a", "b"))),
        ("ALTER TABLE IF EXISTS t SET ('k' = 'v')", st.Alter("TABLE", ("t",), st.SetOptions((("k", "v"),)), True)),
        ("ALTER TABLE t RESET ('k', 'l')", st.Alter("TABLE", ("t",), st.ResetOptions(("k", "l")))),
        ("ALTER TABLE t DROP (a, b)", st.Alter("TABLE", ("t",), st.DropParts("COLUMN", ("a", "b")))),
        ("ALTER TABLE t DROP WATERMARK", st.Alter("TABLE", ("t",), st.DropParts("WATERMARK"))),
        ("ALTER TABLE t DROP PRIMARY KEY", st.Alter("TABLE", ("t",), st.DropParts("PRIMARY KEY"))),
        ("ALTER DATABASE d SET ('k' = 'v')", st.Alter("DATABASE", ("d",), st.SetOptions((("k", "v"),)))),
        ("ALTER VIEW v RENAME TO w", st.Alter("VIEW", ("v",), st.RenameTo(("w",)))),
        ("SHOW TABLES", st.Show("TABLES")),
        ("SHOW TABLES FROM c.d NOT LIKE 'a%'", st.Show("TABLES", ("c", "d"), "a%", True)),
        ("SHOW DATABASES IN c ILIKE 'a%'", st.Show("DATABASES", ("c",), "a%", ignore_case=True)),
        ("SHOW COLUMNS FROM t LIKE 'x'", st.Show("COLUMNS", ("t",), "x")),
        ("SHOW USER FUNCTIONS", st.Show("USER FUNCTIONS")),
        ("SHOW CURRENT CATALOG", st.Show("CURRENT CATALOG")),
        ("SHOW CREATE TABLE a.b", st.Show("CREATE TABLE", ("a", "b"))),
        ("SHOW FULL MODULES", st.Show("FULL MODULES")),
        ("DESCRIBE t", st.Describe(("t",))),
        ("DESC EXTENDED c.d.t", st.Describe(("c", "d", "t"), extended=True)),
        ("DESCRIBE DATABASE d", st.Describe(("d",), "DATABASE")),
        ("USE d", st.Use("DATABASE", ("d",))),
        ("USE c.d", st.Use("DATABASE", ("c", "d"))),
        ("USE CATALOG c", st.Use("CATALOG", ("c",))),
        ("USE MODULES a, b", st.Use("MODULES", ("a", "b"))),
        ("SET 'k' = 'v'", st.Set("k", "v")),
        ("SET table.exec.state.ttl = 1 h", st.Set("table.exec.state.ttl", "1 h")),
        ("SET", st.Set()),
        ("RESET 'k'", st.Reset("k")),
        ("RESET", st.Reset()),
        ("LOAD MODULE m WITH ('a' = 'b')", st.LoadModule("m", (("a", "b"),))),
        ("UNLOAD MODULE m", st.UnloadModule("m")),
        ("ADD JAR 'x.jar'", st.Jar("ADD", "x.jar")),
        ("STOP JOB 'j' WITH SAVEPOINT WITH DRAIN", st.StopJob("j", True, True)),
        ("TRUNCATE TABLE t", st.Truncate(("t",))),
        ("BEGIN STATEMENT SET", st.BeginStatementSet()),
        ("QUIT", st.Client("QUIT")),
    ],
)
def test_small_statements(text: str, expected: st.Statement) -> None:
    statement = only(text)
    assert statement == type(expected)(**{**vars(expected), "text": text})


def test_alter_table_adds_and_modifies() -> None:
    statement = only(
        "ALTER TABLE t ADD (a INT FIRST, b AS a + 1 AFTER a, WATERMARK FOR ts AS ts, PRIMARY KEY (a) NOT ENFORCED)"
    )
    assert isinstance(statement, st.Alter) and isinstance(statement.change, st.ChangeSchema)
    change = statement.change
    assert [(one.column.name, one.where, one.after) for one in change.columns] == [
        ("a", "FIRST", None),
        ("b", "AFTER", "a"),
    ]
    assert change.watermark is not None and change.primary_key == st.PrimaryKey(("a",))
    modified = only("ALTER TABLE t MODIFY a BIGINT NOT NULL COMMENT 'x' AFTER b")
    assert isinstance(modified, st.Alter) and isinstance(modified.change, st.ChangeSchema)
    column = st.ColumnSpec("a", DataTypes.BIGINT().not_null(), comment="x")
    assert modified.change == st.ChangeSchema("MODIFY", (st.Placed(column, "AFTER", "b"),))


def test_insert_and_statement_sets() -> None:
    insert = only("INSERT INTO a.b PARTITION (d = '1') (x, y) SELECT 1, 2")
    assert isinstance(insert, st.InsertInto)
    assert (insert.path, insert.columns, insert.overwrite) == (("a", "b"), ("x", "y"), False)
    assert [(name, value.value) for name, value in insert.partition] == [("d", "1")]
    assert isinstance(only("INSERT OVERWRITE t VALUES (1), (2)"), st.InsertInto)
    hinted = only("INSERT INTO t /*+ OPTIONS('a' = 'b') */ SELECT 1")
    assert isinstance(hinted, st.InsertInto) and hinted.options == (("a", "b"),)
    block = only("EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT 1; INSERT INTO b SELECT 2; END")
    assert isinstance(block, st.StatementSetBlock) and [one.path for one in block.inserts] == [("a",), ("b",)]


def test_explain_with_details() -> None:
    plain = only("EXPLAIN PLAN FOR SELECT 1")
    assert isinstance(plain, st.Explain) and isinstance(plain.statement, st.Query) and plain.details == ()
    detailed = only("EXPLAIN CHANGELOG_MODE, PLAN_ADVICE INSERT INTO t SELECT 1")
    assert isinstance(detailed, st.Explain) and detailed.details == ("CHANGELOG_MODE", "PLAN_ADVICE")
    together = only("EXPLAIN STATEMENT SET BEGIN INSERT INTO a SELECT 1; END")
    assert isinstance(together, st.Explain) and isinstance(together.statement, st.StatementSetBlock)


def test_several_statements_with_comments() -> None:
    text = "-- first\nSET 'a' = 'b'; /* second */\n\nSELECT 1; // third\nSELECT ';'"
    assert [type(one).__name__ for one in parse(text)] == ["Set", "Query", "Query"]
    assert [one.text for one in parse(text)] == ["SET 'a' = 'b'", "SELECT 1", "SELECT ';'"]
    assert parse(" ; ;") == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a+b*c-d", "`a` + `b` * `c` - `d`"),
        ("(a+b)*c-(d-e)", "(`a` + `b`) * `c` - (`d` - `e`)"),
        ("not a or b and c is not null", "NOT `a` OR `b` AND `c` IS NOT NULL"),
        ("case x when 1 then 'a' end", "CASE WHEN `x` = 1 THEN 'a' ELSE NULL END"),
        ("cast(a.b as decimal(5,2))", "CAST(`a`.`b` AS DECIMAL(5, 2))"),
        ("coalesce(m['k'], xs[1])", "COALESCE(`m`['k'], `xs`[1])"),
        ("x between 1 and 2 + 3", "`x` BETWEEN 1 AND 2 + 3"),
        ("floor(ts to hour)", "FLOOR(`ts` TO HOUR)"),
        ("extract(day from ts)", "EXTRACT(DAY FROM `ts`)"),
        ("trim(leading 'x' from k)", "TRIM(LEADING 'x' FROM `k`)"),
        ("k like 'a!%' escape '!'", "`k` LIKE 'a!%' ESCAPE '!'"),
        ("proctime()", "PROCTIME()"),
        ("current_timestamp", "CURRENT_TIMESTAMP"),
        ("-x + -1", "- `x` + -1"),
        ("ts - interval '1' day", "`ts` - INTERVAL '1' DAY"),
        ("`we``ird`", "`we``ird`"),
        ("x in (1, 2) and (a, b) = (1, 2)", "`x` IN (1, 2) AND ROW(`a`, `b`) = ROW(1, 2)"),
    ],
)
def test_expressions_are_shown_as_flink_shows_them_and_read_back(text: str, shown: str) -> None:
    expression = parse_expression(text)
    assert str(expression) == shown
    assert str(parse_expression(shown)) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("INTEGER", "INT"),
        ("CHAR", "CHAR(1)"),
        ("VARCHAR", "STRING"),
        ("VARCHAR(5) NOT NULL", "VARCHAR(5) NOT NULL"),
        ("DEC(5)", "DECIMAL(5, 0)"),
        ("NUMERIC", "DECIMAL(10, 0)"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(3)"),
        ("TIME", "TIME(0)"),
        ("INT ARRAY", "ARRAY<INT NOT NULL>"),
        ("MAP<STRING, ARRAY<MULTISET<INT>>>", "MAP<STRING, ARRAY<MULTISET<INT>>>"),
        ("ROW(a INT, b ROW<c STRING>)", "ROW<`a` INT, `b` ROW<`c` STRING>>"),
        ("INTERVAL DAY TO SECOND(3)", "INTERVAL DAY TO SECOND"),
        ("BYTES NOT NULL", "BYTES NOT NULL"),
    ],
)
def test_types(text: str, shown: str) -> None:
    assert parse_type(text).as_sql() == shown
    assert parse_type(shown) == parse_type(text)
