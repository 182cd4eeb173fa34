"""Programs whose results once differed from those of Apache Flink 2.3.0, recorded in mended_expected.json, and queries
that Flink refuses, with the class of its error, in refusals.json."""
import io
import json
import os
import sys

from harness import case, module
from inputs import events, rows, upserts, versions

table = module("table")
common = module("common")
expressions = module("table.expressions")
Types = common.Types
col, lit = expressions.col, expressions.lit

ORDERS = [(1, "ann", "pen", 3, 1.5), (2, "bob", "ink", 1, 7.25), (3, "ann", "pad", 2, 4.0), (4, "cyd", "pen", 10, 1.25),
          (5, None, "pad", 1, 4.0), (6, "bob", "pen", None, 1.5), (7, "ann", "ink", 4, None), (8, "dee", "cup", 6, 3.5),
          (9, "cyd", "cup", 2, 3.5), (10, "bob", "pad", 5, 3.75), (11, "ann", "pen", 1, 1.5), (12, None, None, 7, 2.0)]


def orders(t):
    rows(t, "orders", "id INT, customer STRING, item STRING, qty INT, price DOUBLE", ORDERS)


def customers(t):
    rows(t, "customers", "name STRING, city STRING", [("ann", "Ulm"), ("bob", "Bonn"), ("cyd", "Ulm"), ("eve", "Kiel"), (None, "Nowhere")])


def q(name, sql, *inputs, mode="streaming", order="bag", error=False):
    def fn(t):
        for i in inputs:
            i(t)
        return sql
    fn.__name__ = name
    case(mode=mode, order=order, error=error)(fn)


B = dict(mode="batch")
LAT = "SELECT c.name, l.* FROM customers c {0} LATERAL (SELECT {1} FROM orders o WHERE {2}) AS l {3}"
EQ, NE = "o.customer = c.name", "o.customer > c.name"
n = 0
for mode in ("batch", "streaming"):
    for inner, tail in ((",", ""), ("LEFT JOIN", "ON TRUE")):
        for expr in ("COUNT(*) AS n", "COUNT(*) + 1 AS n", "SUM(qty) AS n", "COALESCE(SUM(qty), -1) AS n", "COUNT(*) AS n, SUM(qty) AS s", "COUNT(*) + 1 AS n, SUM(qty) AS s", "MAX(qty) - MIN(qty) AS n"):
            if mode == "streaming" and expr not in ("COUNT(*) AS n", "COUNT(*) + 1 AS n"): continue
            n += 1
            q(f"lat_{n}", LAT.format(inner, expr, EQ, tail), customers, orders, mode=mode)
    for inner, tail in ((",", ""), ("LEFT JOIN", "ON TRUE")):
        for expr in ("COUNT(*) AS n", "COUNT(*) + 1 AS n"):
            if mode == "streaming": continue
            n += 1
            q(f"lat_{n}", LAT.format(inner, expr, NE, tail), customers, orders, mode=mode)
q("lat_cond", "SELECT c.name, l.* FROM customers c JOIN LATERAL (SELECT COUNT(*) AS n FROM orders o WHERE o.customer = c.name) AS l ON l.n < 3", customers, orders, **B)
q("lat_group", "SELECT c.name, l.* FROM customers c LEFT JOIN LATERAL (SELECT item, COUNT(*) AS n FROM orders o WHERE o.customer = c.name GROUP BY item) AS l ON TRUE", customers, orders, **B)
q("over_ext2", "SELECT id, COUNT(*) OVER (w ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS c, SUM(id) OVER w AS s FROM orders WINDOW w AS (PARTITION BY item ORDER BY id)", orders, **B)
q("over_ext3", "SELECT id, COUNT(*) OVER w2 AS c, SUM(id) OVER w2 AS s FROM orders WINDOW w AS (PARTITION BY item ORDER BY id), w2 AS (w ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", orders, **B)
q("over_ext4", "SELECT id, COUNT(*) OVER (w ROWS 1 PRECEDING) AS c FROM orders WINDOW w AS (PARTITION BY item ORDER BY id)", orders, **B)
q("over_ext5", "SELECT id, COUNT(*) OVER (w ORDER BY id) AS c FROM orders WINDOW w AS (PARTITION BY item)", orders, **B)


def printed(t, *texts):
    """What is written to stdout."""
    kept, sys.stdout = sys.stdout, io.StringIO()
    try:
        for text in texts:
            r = t.execute_sql(text)
            r.wait() if text.startswith("INSERT") else r.print()
        return sys.stdout.getvalue().splitlines()
    finally:
        sys.stdout = kept


TYPES = "SELECT CAST(1.50 AS DECIMAL(5, 2)) AS a, DATE '2024-01-02' AS b, TIMESTAMP '2024-01-02 03:04:05.600' AS c, TIME '01:02:03' AS d, ARRAY[1, 2] AS e, MAP['k', 'v'] AS f, ROW(1, 'x') AS g, CAST(NULL AS INT) AS h, X'0AFF' AS i, 1e10 AS j, CAST(1.5 AS FLOAT) AS k, 'a b' AS l, TRUE AS n, ARRAY['p', CAST(NULL AS STRING)] AS o, ROW(CAST(NULL AS INT), DATE '2024-01-02', TRUE) AS p"


@case()
def p_print_sink(t):
    t.execute_sql("CREATE TABLE pr (a DECIMAL(5, 2), b DATE, c TIMESTAMP(3), d TIME(0), e ARRAY<INT>, f MAP<STRING, STRING>, g ROW<x INT, y STRING>, h INT, i BYTES, j DOUBLE, k FLOAT, l STRING, n BOOLEAN, o ARRAY<STRING>, p ROW<x INT, y DATE, z BOOLEAN>) WITH ('connector' = 'print', 'print-identifier' = 'id')")
    return printed(t, "INSERT INTO pr " + TYPES)


@case()
def p_print_types_stream(t):
    return printed(t, TYPES)


@case()
def p_print_empty(t):
    orders(t)
    return printed(t, "SELECT id FROM orders WHERE id > 100")


@case()
def p_print_rows(t):
    orders(t)
    return printed(t, "SELECT id, customer, price, qty > 2 AS b FROM orders WHERE id IN (1, 5, 6)")


@case(mode="batch")
def p_print_types(t):
    return printed(t, "SELECT CAST(1.50 AS DECIMAL(5, 2)) AS a, DATE '2024-01-02' AS b, TIMESTAMP '2024-01-02 03:04:05.600' AS c, TIME '01:02:03' AS d, ARRAY[1, 2] AS e, MAP['k', 'v'] AS f, ROW(1, 'x') AS g, CAST(NULL AS INT) AS h, X'0AFF' AS i, 1e10 AS j, CAST(1.5 AS FLOAT) AS k, 'a long text that is more than thirty characters wide' AS l, INTERVAL '1' DAY AS m, TRUE AS n")


@case()
def p_print_ddl(t):
    return printed(t, "CREATE TABLE s (a INT NOT NULL, b STRING) WITH ('connector' = 'blackhole')", "SHOW TABLES", "DESCRIBE s", "SHOW FULL MODULES", "SHOW VIEWS")


@case()
def d_explain(t):
    orders(t)
    heads = lambda text: [l for l in text.splitlines() if l.startswith("==")]
    out = []
    for text in ("EXPLAIN SELECT 1", "EXPLAIN PLAN FOR SELECT id FROM orders", "EXPLAIN ESTIMATED_COST, CHANGELOG_MODE SELECT id FROM orders", "EXPLAIN JSON_EXECUTION_PLAN SELECT id FROM orders", "EXPLAIN PLAN_ADVICE SELECT item, COUNT(*) FROM orders GROUP BY item"):
        r = t.execute_sql(text)
        out.append([r.get_resolved_schema().get_column_names(), [heads(x[0]) for x in r.collect()]])
    t.execute_sql("CREATE TABLE hole (k STRING) WITH ('connector' = 'blackhole')")
    out.append(heads(t.explain_sql("INSERT INTO hole SELECT item FROM orders")))
    st = t.create_statement_set()
    st.add_insert_sql("INSERT INTO hole SELECT item FROM orders")
    st.add_insert_sql("INSERT INTO hole SELECT customer FROM orders")
    out.append(heads(st.explain()))
    out.append(heads(t.explain_sql("SELECT 1", table.ExplainDetail.JSON_EXECUTION_PLAN)))
    return out


@case()
def p_from_stream_fields(t):
    ds = t.env.from_collection([(1, "a"), (2, "b")], type_info=Types.TUPLE([Types.LONG(), Types.STRING()]))
    return t.from_data_stream(ds, col("x"), col("y")).select(col("y"), col("x"))


@case()
def p_in_table(t):
    orders(t), customers(t)
    return t.from_path("orders").where(col("customer").in_(t.from_path("customers").where(col("city") == "Ulm").select(col("name")))).select(col("id"))


@case()
def p_select_forms(t):
    orders(t)
    return t.from_path("orders").select(col("id"), col("qty") + 1, col("item").upper_case, (col("qty") > 2) & col("price").is_not_null, lit(1.5), col("price").round(1).alias("r"))


@case()
def p_group_many(t):
    orders(t)
    return t.from_path("orders").group_by(col("item")).select(col("item"), col("qty").sum, col("qty").avg.alias("a"), col("id").count.distinct.alias("d"), col("price").min.alias("mi"), col("customer").max.alias("ma"), col("id").first_value.alias("f"), col("id").last_value.alias("l"), (col("qty").sum * 2 + 1).alias("x"))


@case(mode="batch", order="list")
def p_order(t):
    orders(t)
    return t.from_path("orders").select(col("id"), col("qty"), col("price")).order_by(col("qty").desc, col("id").asc).offset(2).fetch(5)


@case()
def p_order_stream(t):
    orders(t)
    return t.from_path("orders").select(col("id"), col("qty")).order_by(col("qty").desc, col("id").asc).fetch(3)


@case(mode="batch", order="list")
def order_asc_nulls(t):
    orders(t)
    return t.from_path("orders").select(col("id"), col("qty")).order_by(col("qty").asc, col("id").asc).fetch(20)


@case(mode="batch", order="list")
def order_plain_nulls(t):
    orders(t)
    return t.from_path("orders").select(col("id"), col("customer")).order_by(col("customer"), col("id").desc).fetch(20)


# --- what Flink refuses, at the latest when it explains the plan
def tables(t, mode):
    rows(t, "a", "id INT, k STRING, x INT, y DOUBLE, t3 TIMESTAMP(3)", [])
    rows(t, "b", "id INT, k STRING, v BIGINT", [])
    events(t, "e", "k STRING, v INT, w DOUBLE", [(1, "p", 1, .5)]), events(t, "f", "k STRING, v INT, w DOUBLE", [(1, "p", 1, .5)])
    if mode == "streaming":
        versions(t, "r", "cur STRING, rate INT", [("+I", 0, "eur", 100)], key=("cur",))
        upserts(t, "u", "k STRING, v INT", [("+I", "a", 1)], key=("k",))


def refused(number, mode, query):
    def fn(t):
        tables(t, mode)
        t.sql_query(query).explain()
    fn.__name__ = f"refused_{number}"
    case(mode=mode, error=True)(fn)


with open(os.path.join(os.path.dirname(__file__), "refusals.json")) as f:
    for number, (mode, query, _) in enumerate(json.load(f)):
        refused(number, mode, query)
