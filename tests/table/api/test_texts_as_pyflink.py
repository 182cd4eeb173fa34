"""Expressions, schemas and descriptors as texts."""

import pytest

from penstock.table import DataTypes, FormatDescriptor, Schema, TableDescriptor
from penstock.table.expression.expression import Expression
from penstock.table.expression.expression_functions import CURRENT_ROW as HERE
from penstock.table.expression.expression_functions import (
    and_,
    array,
    call_sql,
    col,
    if_then_else,
    lit,
    log,
    null_of,
    range_,
    row_interval,
)

a, b = col("a"), col("b")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (a == b, "equals(a, b)"),
        (2 % b, "mod(2, b)"),
        (-a, "minusPrefix(a)"),
        (~a, "isNotTrue(a)"),
        (a.not_between(b, 3), "notBetween(a, b, 3)"),
        (and_(a, b, True), "and(a, b, true)"),
        (a.in_(b, 2), "in(a, b, 2)"),
        (if_then_else(a, None, "it's"), "ifThenElse(a, null, 'it''s')"),
        (a.cast(DataTypes.INT().not_null()), "cast(a, INT NOT NULL)"),
        (a.to_date, "cast(a, DATE)"),
        (a.alias("x", "y"), "as(a, 'x', 'y')"),
        (a.sum.over("w"), "over(sum(a), 'w')"),
        (a.as_argument("n"), "ASSIGNMENT('n', a)"),
        (a.trim_leading(), "trim(true, false, ' ', a)"),
        (a.str_to_map(";", ":"), "strToMap(a, ';', ':')"),
        (a.starts_with(b), "STARTSWITH(a, b)"),
        (lit(2).days, "172800000"),
        (array(1, 2).at(1), "at(array(1, 2), 1)"),
        (log(a), "log(a)"),
        (range_(1, 2), "rangeTo(1, 2)"),
        (row_interval(4), "4"),
        (null_of(DataTypes.INT()), "null"),
        (HERE, "CURRENT_ROW"),
        (call_sql("a + 1"), "a + 1"),
        (a.json_value("$.x", DataTypes.INT()), "JSON_VALUE(a, '$.x', INT, NULL, null, NULL, null)"),
        (a.json_query("$"), "JSON_QUERY(a, '$', STRING, WITHOUT_ARRAY, NULL, NULL)"),
    ],
)
def test_expressions(expression, text):
    assert isinstance(expression, Expression)
    assert str(expression) == text


def test_schemas():
    schema = (
        Schema.new_builder()
        .column("a", "ROW<name STRING>")
        .column("b", DataTypes.INT().not_null())
        .column_by_expression("ts", "PROCTIME()")
        .column_by_metadata("m", DataTypes.STRING(), None, True)
        .column_by_metadata("o", DataTypes.BIGINT(), "offset")
        .primary_key("b")
        .build()
    )
    assert str(schema).splitlines() == [
        "(",
        "  `a` [ROW<name STRING>],",
        "  `b` INT NOT NULL,",
        "  `ts` AS [PROCTIME()],",
        "  `m` STRING METADATA VIRTUAL,",
        "  `o` BIGINT METADATA FROM 'offset',",
        "  CONSTRAINT `PK_b` PRIMARY KEY (`b`) NOT ENFORCED",
        ")",
    ]


def test_descriptors():
    form = FormatDescriptor.for_format("json").option("a", False).option("b", "x").build()
    assert str(form) == "json[{a=false, b=x}]"
    schema = Schema.new_builder().column("f0", DataTypes.STRING()).build()
    table = (
        TableDescriptor.for_connector("mine").schema(schema).partitioned_by("f0").comment("it's").format(form).build()
    )
    assert str(table).splitlines() == [
        "(",
        "  `f0` STRING",
        ")",
        "COMMENT 'it''s'",
        "PARTITIONED BY (`f0`)",
        "WITH (",
        "  'connector' = 'mine',",
        "  'format' = 'json',",
        "  'json.a' = 'false',",
        "  'json.b' = 'x'",
        ")",
    ]
