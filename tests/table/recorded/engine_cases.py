"""More programs, about operators, whose results were recorded from Apache Flink 2.3.0 in engine_expected.json."""
import os
import tempfile

from harness import case, module
from inputs import changes, events, rows, upserts, versions

table = module("table")
common = module("common")
udfs = module("table.udf")
windows = module("table.window")
expressions = module("table.expressions")

DataTypes, Schema, TableDescriptor = table.DataTypes, table.Schema, table.TableDescriptor
Row, Types = common.Row, common.Types
col, lit = expressions.col, expressions.lit
Tumble, Over = windows.Tumble, windows.Over

ORDERS = [(1, "ann", "pen", 3, 1.5), (2, "bob", "ink", 1, 7.25), (3, "ann", "pad", 2, 4.0), (4, "cyd", "pen", 10, 1.25),
          (5, None, "pad", 1, 4.0), (6, "bob", "pen", None, 1.5), (7, "ann", "ink", 4, None), (8, "dee", "cup", 6, 3.5),
          (9, "cyd", "cup", 2, 3.5), (10, "bob", "pad", 5, 3.75), (11, "ann", "pen", 1, 1.5), (12, None, None, 7, 2.0)]
CLICKS = [(1, "ann", "home", 3), (2, "bob", "home", 5), (4, "ann", "cart", 1), (7, "cyd", "home", 2), (9, "bob", "cart", 8),
          (11, "ann", "pay", 4), (14, "cyd", "cart", 6), (15, "ann", "home", 2), (21, "bob", "pay", 9), (22, "ann", "cart", 5),
          (29, "cyd", "pay", 1), (33, "ann", "home", 7), (34, "bob", "home", 3), (48, "cyd", "home", 4)]
PRICES = [("+I", "pen", 10), ("+I", "ink", 40), ("-U", "pen", 10), ("+U", "pen", 12), ("+I", "cup", 30), ("-D", "ink", 40),
          ("-U", "cup", 30), ("+U", "cup", 25), ("+I", "pad", 25), ("-U", "pen", 12), ("+U", "pen", 9)]


def orders(t):
    rows(t, "orders", "id INT, customer STRING, item STRING, qty INT, price DOUBLE", ORDERS)


def clicks(t, delay=0):
    events(t, "clicks", "who STRING, page STRING, n INT", CLICKS, delay)


def prices(t):
    changes(t, "prices", "item STRING, price INT", PRICES)


def values(t, name, columns, *data):
    """A view over VALUES."""
    t.create_temporary_view(name, t.sql_query(f"SELECT * FROM (VALUES {', '.join(data)}) AS v({columns})"))


Slide, Session = windows.Slide, windows.Session
LATE = [(1, "a", 1), (12, "a", 2), (3, "a", 100), (9, "b", 7), (25, "b", 3), (19, "a", 50), (21, "a", 5), (40, "a", 6), (22, "b", 9), (38, "c", 1)]


def late(t, delay=2):
    events(t, "e", "k STRING, v INT", LATE, delay)


def q(name, sql, *inputs, mode="streaming", order="bag", error=False):
    def fn(t):
        for i in inputs:
            i(t)
        return sql
    fn.__name__ = name
    case(mode=mode, order=order, error=error)(fn)


def stock(t):
    changes(t, "stock", "item STRING, n INT", [("+I", "pen", 5), ("+I", "jar", 1), ("-U", "pen", 5), ("+U", "pen", 4), ("+I", "pad", 9), ("-D", "jar", 1)])


def customers(t):
    rows(t, "customers", "name STRING, city STRING", [("ann", "Ulm"), ("bob", "Bonn"), ("cyd", "Ulm"), ("eve", "Kiel"), (None, "Nowhere")])


def ups(t):
    upserts(t, "u", "k STRING, g STRING, v INT", [("+I", "a", "x", 1), ("+U", "b", "x", 2), ("+U", "a", "y", 3), ("-D", "b", None, None), ("+I", "a", "y", 3), ("+U", "c", "x", 4), ("+U", "c", "y", 6)], key=("k",))


T = "TABLE(TUMBLE(TABLE {0}, DESCRIPTOR(ts), INTERVAL '{1}' SECOND))"
# windows
q("w_session_no_partition", "SELECT window_start, window_end, SUM(v) AS s FROM TABLE(SESSION(TABLE e, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY window_start, window_end", late)
q("w_session_rows", "SELECT k, v, window_start, window_end, window_time FROM TABLE(SESSION(TABLE e PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND))", late)
q("w_session_late", "SELECT k, window_start, window_end, SUM(v) AS s FROM TABLE(SESSION(TABLE e PARTITION BY k, DESCRIPTOR(ts), INTERVAL '3' SECOND)) GROUP BY k, window_start, window_end", late)
q("w_hop_offset", "SELECT window_start, window_end, k, SUM(v) AS s, COUNT(*) AS c FROM TABLE(HOP(TABLE e, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND, INTERVAL '2' SECOND)) GROUP BY window_start, window_end, k", late)
q("w_cumulate_offset", "SELECT window_start, window_end, SUM(v) AS s FROM TABLE(CUMULATE(TABLE e, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '15' SECOND, INTERVAL '3' SECOND)) GROUP BY window_start, window_end", late)
q("w_cumulate_late_keys", "SELECT window_start, window_end, k, SUM(v) AS s FROM TABLE(CUMULATE(TABLE e, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND)) GROUP BY window_start, window_end, k", late)
q("w_window_time_only", f"SELECT window_time, SUM(v) AS s FROM {T.format('e', 10)} GROUP BY window_time", late)
q("w_agg_filter_distinct", f"SELECT window_start, COUNT(DISTINCT k) AS d, SUM(v) FILTER (WHERE v > 4) AS f, MAX(k) AS m, AVG(v) AS a, LISTAGG(k) AS l FROM {T.format('e', 20)} GROUP BY window_start, window_end", late)
q("w_agg_having", f"SELECT window_start, k, SUM(v) AS s FROM {T.format('e', 10)} GROUP BY window_start, window_end, k HAVING SUM(v) > 4", late)
q("w_only_start", f"SELECT window_start, SUM(v) AS s FROM {T.format('e', 10)} GROUP BY window_start", late)
q("w_semi_join", f"SELECT l.k, l.v, l.window_start FROM {T.format('e', 10)} l WHERE l.k IN (SELECT r.who FROM {T.format('clicks', 10)} r WHERE l.window_start = r.window_start AND l.window_end = r.window_end)",
  lambda t: events(t, "e", "k STRING, v INT", [(1, "ann", 1), (5, "dee", 2), (12, "cyd", 3), (22, "cyd", 4), (50, "x", 0)]), clicks)
q("w_anti_join", f"SELECT l.k, l.v, l.window_start FROM {T.format('e', 10)} l WHERE l.k NOT IN (SELECT r.who FROM {T.format('clicks', 10)} r WHERE l.window_start = r.window_start AND l.window_end = r.window_end)",
  lambda t: events(t, "e", "k STRING, v INT", [(1, "ann", 1), (5, "dee", 2), (12, "cyd", 3), (22, "cyd", 4), (50, "x", 0)]), clicks)
q("w_join_inner_condition", f"SELECT l.who, l.n, r.n AS rn, l.window_start FROM {T.format('clicks', 20)} l JOIN {T.format('clicks', 20)} r ON l.window_start = r.window_start AND l.window_end = r.window_end AND l.page = r.page AND l.n < r.n", clicks)
q("w_join_left", f"SELECT l.who, l.n, r.v FROM {T.format('clicks', 10)} l LEFT JOIN {T.format('e', 10)} r ON l.window_start = r.window_start AND l.window_end = r.window_end AND l.n = r.v", clicks, late)
q("w_topn_rows", f"SELECT who, n, window_start FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC) AS rn FROM {T.format('clicks', 20)}) WHERE rn <= 2", clicks)
q("w_topn_range", f"SELECT who, s, rn, window_start FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY s DESC) AS rn FROM (SELECT window_start, window_end, who, SUM(n) AS s FROM {T.format('clicks', 20)} GROUP BY window_start, window_end, who)) WHERE rn BETWEEN 2 AND 3", clicks)
q("w_dedup_first", f"SELECT who, page, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, page ORDER BY ts ASC) AS rn FROM {T.format('clicks', 20)}) WHERE rn = 1", clicks)
q("w_hop_group_old", "SELECT HOP_START(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND) AS s, HOP_END(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND) AS e, k, SUM(v) AS t FROM e GROUP BY HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND), k", late)
q("w_agg_of_window_agg", f"SELECT window_start, MAX(s) AS m, COUNT(*) AS c FROM (SELECT window_start, window_end, k, SUM(v) AS s FROM {T.format('e', 10)} GROUP BY window_start, window_end, k) GROUP BY window_start, window_end", late)
q("w_group_agg_of_window_agg", f"SELECT k, SUM(s) AS m, COUNT(*) AS c FROM (SELECT window_start, window_end, k, SUM(v) AS s FROM {T.format('e', 10)} GROUP BY window_start, window_end, k) GROUP BY k", late)
q("w_rollup", f"SELECT window_start, who, page, SUM(n) AS s FROM {T.format('clicks', 20)} GROUP BY window_start, window_end, ROLLUP (who, page)", clicks)
q("w_join_of_aggs", f"SELECT a.window_start, a.s, b.c FROM (SELECT window_start, window_end, SUM(n) AS s FROM {T.format('clicks', 10)} GROUP BY window_start, window_end) a JOIN (SELECT window_start, window_end, COUNT(*) AS c FROM {T.format('e', 10)} GROUP BY window_start, window_end) b ON a.window_start = b.window_start AND a.window_end = b.window_end", clicks, late)
q("w_proctime_is_not_event", "SELECT k, v FROM e WHERE v > 5", late)
# over
q("o_range_late", "SELECT ts, k, v, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) AS s, COUNT(*) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) AS c FROM e", lambda t: late(t, 20))
q("o_many_functions", "SELECT who, n, MIN(n) OVER w AS mi, MAX(n) OVER w AS ma, FIRST_VALUE(n) OVER w AS f, LAST_VALUE(page) OVER w AS l, COUNT(DISTINCT page) OVER w AS d FROM clicks WINDOW w AS (PARTITION BY who ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", clicks)
q("o_unbounded_many", "SELECT who, n, MIN(n) OVER w AS mi, FIRST_VALUE(n) OVER w AS f, LAST_VALUE(page) OVER w AS l, LISTAGG(page) OVER w AS g FROM clicks WINDOW w AS (PARTITION BY who ORDER BY ts)", clicks)
q("o_lag_filter", "SELECT * FROM (SELECT who, n, LAG(n, 1) OVER (PARTITION BY who ORDER BY ts) AS b FROM clicks) WHERE n > b", clicks)
q("o_desc_error", "SELECT who, SUM(n) OVER (PARTITION BY who ORDER BY ts DESC) AS b FROM clicks", clicks, error=True)
q("o_following_error", "SELECT who, SUM(n) OVER (PARTITION BY who ORDER BY ts ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS b FROM clicks", clicks, error=True)
q("o_non_time_error", "SELECT who, SUM(n) OVER (PARTITION BY who ORDER BY n) AS b FROM clicks", clicks, error=True)
q("o_row_number_stream", "SELECT who, n, ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts) AS b FROM clicks", clicks)
q("o_batch_range_numeric", "SELECT id, qty, SUM(qty) OVER (ORDER BY id RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS s, COUNT(*) OVER (PARTITION BY item ORDER BY price DESC) AS c, AVG(qty) OVER () AS a FROM orders", orders, mode="batch")
q("o_batch_misc", "SELECT id, NTILE(3) OVER (ORDER BY id) AS n, PERCENT_RANK() OVER (ORDER BY price) AS p, CUME_DIST() OVER (ORDER BY price) AS c, FIRST_VALUE(id) OVER (PARTITION BY item ORDER BY id) AS f, LAST_VALUE(id) OVER (PARTITION BY item ORDER BY id) AS l, LAG(id, 2, -1) OVER (ORDER BY id) AS g FROM orders", orders, mode="batch")
q("o_batch_range_time", "SELECT ts, n, SUM(n) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND PRECEDING AND INTERVAL '5' SECOND FOLLOWING) AS s FROM clicks", clicks, mode="batch")
q("o_batch_desc_rows", "SELECT id, SUM(qty) OVER (PARTITION BY customer ORDER BY id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS s, MAX(price) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING) AS m FROM orders", orders, mode="batch")
# top-n
q("t_between", "SELECT item, id, qty, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY qty DESC, id) AS rn FROM orders) WHERE rn BETWEEN 2 AND 3", orders)
q("t_rank_error", "SELECT item, id FROM (SELECT *, RANK() OVER (PARTITION BY item ORDER BY qty DESC) AS rn FROM orders) WHERE rn <= 2", orders, error=True)
q("t_nulls", "SELECT id, qty FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY qty ASC NULLS LAST, id) AS rn FROM orders) WHERE rn <= 3", orders)
q("t_updating_rank", "SELECT item, s, rn FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY s DESC, item) AS rn FROM (SELECT item, SUM(qty) AS s FROM orders GROUP BY item)) WHERE rn <= 3", orders)
q("t_limit_plain", "SELECT id FROM orders LIMIT 4", orders)
q("t_limit_offset", "SELECT id, qty FROM orders ORDER BY qty DESC, id LIMIT 3 OFFSET 2", orders)
q("t_order_limit_updating", "SELECT item, COUNT(*) AS c FROM orders GROUP BY item ORDER BY c DESC, item LIMIT 2", orders)
q("t_eq_two", "SELECT item, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY id) AS rn FROM orders) WHERE rn = 2", orders)
q("t_dedup_rank_out", "SELECT who, page, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts DESC) AS rn FROM clicks) WHERE rn = 1", clicks)
q("t_dedup_then_agg", "SELECT page, COUNT(*) AS c FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts DESC) AS rn FROM clicks) WHERE rn = 1 GROUP BY page", clicks)
q("t_topn_then_agg", "SELECT item, SUM(qty) AS s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY qty DESC, id) AS rn FROM orders) WHERE rn <= 2 GROUP BY item", orders)
q("t_batch_rank", "SELECT item, id, rn FROM (SELECT *, RANK() OVER (PARTITION BY item ORDER BY price DESC) AS rn FROM orders) WHERE rn <= 2", orders, mode="batch")
# joins
q("j_left_agg", "SELECT c.name, o.s FROM customers c LEFT JOIN (SELECT customer, SUM(qty) AS s FROM orders GROUP BY customer) o ON c.name = o.customer", orders, customers)
q("j_full_aggs", "SELECT a.item, a.s, b.n FROM (SELECT item, SUM(qty) AS s FROM orders GROUP BY item) a FULL JOIN stock b ON a.item = b.item", orders, stock)
q("j_non_equi", "SELECT o.id, p.item FROM orders o JOIN prices p ON o.qty > p.price", orders, prices)
q("j_cross_stream", "SELECT c.name, p.item FROM customers c CROSS JOIN prices p", customers, prices)
q("j_not_in_stream", "SELECT id FROM orders WHERE customer NOT IN (SELECT name FROM customers WHERE name IS NOT NULL)", orders, customers)
q("j_not_in_null_stream", "SELECT id FROM orders WHERE item NOT IN (SELECT item FROM prices)", orders, prices)
q("j_exists_correlated", "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM prices p WHERE p.item = o.item AND p.price > o.qty)", orders, prices)
q("j_scalar_stream", "SELECT id FROM orders WHERE qty > (SELECT AVG(price) / 10 FROM prices)", orders, prices)
q("j_three", "SELECT o.id, c.city, p.price FROM orders o LEFT JOIN customers c ON o.customer = c.name LEFT JOIN prices p ON o.item = p.item", orders, customers, prices)
q("j_right_updating", "SELECT p.item, s.n FROM prices p RIGHT JOIN stock s ON p.item = s.item AND p.price > 10", prices, stock)
q("j_self_dups", "SELECT a.id AS x, b.id AS y FROM orders a JOIN orders b ON a.customer = b.customer AND a.id < b.id", orders)
q("j_expr_key", "SELECT a.id AS x, b.id AS y FROM orders a JOIN orders b ON a.qty * 2 = b.qty", orders)
q("j_interval_full", "SELECT a.k, a.v, b.v AS w FROM e a FULL JOIN f b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '3' SECOND AND b.ts + INTERVAL '1' SECOND",
  lambda t: events(t, "e", "k STRING, v INT", [(1, "a", 1), (5, "b", 2), (9, "a", 3), (30, "z", 4)]), lambda t: events(t, "f", "k STRING, v INT", [(2, "a", 10), (4, "a", 11), (5, "b", 12), (6, "b", 13), (40, "y", 14)]))
q("j_interval_right_residual", "SELECT a.v, b.v AS w FROM e a RIGHT JOIN f b ON a.k = b.k AND a.v + 9 < b.v AND a.ts >= b.ts - INTERVAL '3' SECOND AND a.ts <= b.ts",
  lambda t: events(t, "e", "k STRING, v INT", [(1, "a", 1), (5, "b", 2), (9, "a", 3), (30, "z", 4)]), lambda t: events(t, "f", "k STRING, v INT", [(2, "a", 10), (4, "a", 11), (5, "b", 12), (6, "b", 13), (40, "y", 14)]))
q("j_interval_equal_time", "SELECT a.v, b.v AS w FROM e a JOIN f b ON a.k = b.k AND a.ts = b.ts",
  lambda t: events(t, "e", "k STRING, v INT", [(1, "a", 1), (5, "b", 2), (9, "a", 3), (30, "z", 4)]), lambda t: events(t, "f", "k STRING, v INT", [(1, "a", 10), (4, "a", 11), (5, "b", 12), (9, "a", 13), (40, "y", 14)]))
VERS = [("+I", 0, "eur", 100), ("+I", 1, "usd", 90), ("-U", 0, "eur", 100), ("+U", 10, "eur", 105), ("-D", 20, "usd", 90), ("+I", 24, "yen", 1)]
q("j_temporal_inner", "SELECT o.id, r.rate FROM o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.cur = r.cur AND r.rate > 95",
  lambda t: events(t, "o", "id INT, cur STRING", [(0, 0, "eur"), (2, 1, "eur"), (5, 2, "usd"), (12, 3, "eur"), (15, 4, "yen"), (25, 5, "usd"), (26, 6, "yen")]), lambda t: versions(t, "rates", "cur STRING, rate INT", VERS, key=("cur",)))
q("j_temporal_view", "SELECT o.id, r.v FROM o LEFT JOIN latest FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k",
  lambda t: (events(t, "o", "id INT, k STRING", [(2, 1, "a"), (7, 2, "a"), (9, 3, "b")]), events(t, "f", "k STRING, v INT", [(1, "a", 1), (5, "a", 2), (8, "b", 3), (11, "c", 4)]),
             t.create_temporary_view("latest", t.sql_query("SELECT ts, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM f) WHERE rn = 1"))))
# sets
q("s_intersect_stream", "SELECT customer FROM orders INTERSECT SELECT name FROM customers", orders, customers)
q("s_except_all_stream", "SELECT item FROM orders EXCEPT ALL SELECT item FROM prices", orders, prices)
q("s_intersect_all_stream", "SELECT item FROM orders INTERSECT ALL SELECT item FROM stock", orders, stock)
q("s_union_updating", "SELECT item FROM prices UNION SELECT item FROM stock", prices, stock)
q("s_distinct_updating", "SELECT DISTINCT price > 20 AS big FROM prices", prices)
q("s_union_all_updating", "SELECT item, price FROM prices UNION ALL SELECT item, n FROM stock", prices, stock)
# aggregates
q("a_cube_updating", "SELECT item, price, COUNT(*) AS c FROM prices GROUP BY CUBE (item, price)", prices)
q("a_count_distinct_two", "SELECT item, COUNT(DISTINCT customer) AS a, COUNT(DISTINCT qty) AS b, SUM(DISTINCT qty) AS c, COUNT(*) AS n FROM orders GROUP BY item", orders)
q("a_distinct_filter", "SELECT COUNT(DISTINCT item) FILTER (WHERE price > 11) AS d, COUNT(DISTINCT item) AS e FROM prices", prices)
q("a_three_levels", "SELECT c, COUNT(*) AS n FROM (SELECT b, COUNT(*) AS c FROM (SELECT item, COUNT(*) AS b FROM orders GROUP BY item) GROUP BY b) GROUP BY c", orders)
q("a_listagg_distinct", "SELECT item, LISTAGG(DISTINCT customer) AS l FROM orders GROUP BY item", orders)
q("a_first_last_retract", "SELECT FIRST_VALUE(item) AS f, LAST_VALUE(item) AS l, FIRST_VALUE(price) AS p, LAST_VALUE(price) AS q FROM prices", prices)
q("a_array_agg_stream", "SELECT CAST(ARRAY_AGG(price) AS STRING) AS a FROM prices", prices)
q("a_collect_retract", "SELECT CAST(COLLECT(price) AS STRING) AS a FROM prices", prices)
q("a_minmax_text", "SELECT MIN(item) AS a, MAX(item) AS b FROM prices", prices)
q("a_avg_decimal", "SELECT AVG(CAST(price AS DECIMAL(8, 2))) AS a, SUM(CAST(price AS DECIMAL(8, 2))) AS s, AVG(CAST(price AS DOUBLE)) AS d FROM prices", prices)
q("a_spread_stream", "SELECT VAR_POP(CAST(price AS DOUBLE)) AS a, STDDEV_SAMP(CAST(price AS DOUBLE)) AS b, VAR_SAMP(price) AS c, STDDEV_POP(price) AS d FROM prices", prices)
q("a_having_updating", "SELECT item, SUM(price) AS s FROM prices GROUP BY item HAVING SUM(price) > 11", prices)
q("a_bool_keys", "SELECT price > 20 AS b, COUNT(*) AS c, MAX(item) AS m FROM prices GROUP BY price > 20", prices)
q("a_upsert_regroup", "SELECT g, COUNT(*) AS c, SUM(v) AS s, MAX(v) AS m FROM u GROUP BY g", ups)
q("a_upsert_join", "SELECT u.k, u.v, p.price FROM u LEFT JOIN prices p ON u.v = p.price OR u.k = p.item", ups, prices)
q("a_grouping_ids", "SELECT GROUPING(item) AS a, GROUPING_ID(customer, item) AS b, SUM(qty) AS s FROM orders GROUP BY ROLLUP (customer, item)", orders, mode="batch")
q("a_batch_many", "SELECT item, LISTAGG(customer, ';') AS l, COUNT(DISTINCT customer) AS d, MIN(price) AS m, MAX(customer) AS x, AVG(qty) AS a, SUM(price) AS s, STDDEV_POP(qty) AS sd FROM orders GROUP BY item", orders, mode="batch")
q("a_null_only", "SELECT item, SUM(qty) AS s, MAX(qty) AS m, COUNT(qty) AS c, AVG(qty) AS a FROM orders WHERE id = 6 GROUP BY item", orders)
q("a_array_key", "SELECT a, COUNT(*) AS c FROM (SELECT ARRAY[item, customer] AS a FROM orders WHERE item IS NOT NULL AND customer IS NOT NULL) GROUP BY a", orders, mode="batch")
q("a_approx", "SELECT APPROX_COUNT_DISTINCT(item) AS a FROM orders", orders, mode="batch")
q("a_single_group_constants", "SELECT 1 AS one_, COUNT(*) AS c, MAX(price) AS m FROM prices GROUP BY 1, price > 100", prices)
# unnest, lateral
def nested(t):
    values(t, "nest", "id, xs, m", "(1, ARRAY['a', 'b'], MAP['k', 1, 'l', 2])", "(2, ARRAY['c'], MAP['z', 9])")
q("n_ordinality", "SELECT id, x, o FROM nest CROSS JOIN UNNEST(xs) WITH ORDINALITY AS t(x, o)", nested)
q("n_map", "SELECT id, k, v FROM nest CROSS JOIN UNNEST(m) AS t(k, v)", nested)
q("n_left_where", "SELECT id, x FROM nest LEFT JOIN UNNEST(xs) AS t(x) ON TRUE WHERE x <> 'a'", nested)
q("n_collect_unnest", "SELECT x FROM (SELECT COLLECT(qty) AS bag FROM orders) CROSS JOIN UNNEST(bag) AS t(x)", orders, mode="batch")
q("n_rows", "SELECT id, a, b FROM (SELECT id, ARRAY[ROW(id, qty), ROW(id + 1, qty)] AS r FROM orders WHERE id < 3) CROSS JOIN UNNEST(r) AS t(a, b)", orders)
# match
TICKS = [(1, "acme", 12), (2, "acme", 17), (3, "zorg", 5), (4, "acme", 13), (5, "acme", 16), (6, "zorg", 4), (7, "acme", 25), (8, "acme", 2),
         (9, "zorg", 3), (10, "acme", 4), (11, "acme", 10), (12, "zorg", 9), (13, "acme", 15), (14, "zorg", 8), (15, "acme", 25), (16, "acme", 11)]


def m(name, body, partition="PARTITION BY sym", error=False):
    q(name, f"SELECT * FROM ticks MATCH_RECOGNIZE ({partition} ORDER BY ts {body}) AS m", lambda t: events(t, "ticks", "sym STRING, price INT", TICKS), error=error)


m("m_optional", "MEASURES A.price AS a, B.price AS b, C.price AS c ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B? C) DEFINE A AS A.price > 10, B AS B.price < 14, C AS C.price > 15")
m("m_times", "MEASURES FIRST(A.price) AS a, LAST(A.price) AS b, C.price AS c ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A{2} C) DEFINE A AS A.price > 3, C AS C.price < LAST(A.price)")
m("m_times_range", "MEASURES COUNT(A.price) AS n, C.price AS c ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A{1,3} C) DEFINE A AS A.price > 10, C AS C.price < 12")
m("m_skip_first", "MEASURES A.price AS a, LAST(B.price) AS b, C.price AS c ONE ROW PER MATCH AFTER MATCH SKIP TO FIRST C PATTERN (A B* C) DEFINE B AS B.price > 12, C AS C.price <= 12")
m("m_skip_last", "MEASURES A.price AS a, LAST(B.price) AS b, C.price AS c ONE ROW PER MATCH AFTER MATCH SKIP TO LAST B PATTERN (A B+ C) DEFINE A AS A.price < 15, B AS B.price > 12, C AS C.price <= 12")
m("m_no_partition", "MEASURES A.sym AS s, A.price AS a, B.price AS b, MATCH_ROWTIME() AS r ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE B AS B.price > A.price + 3", partition="")
m("m_sums", "MEASURES SUM(A.price) AS s, MIN(A.price) AS mi, MAX(A.price) AS ma, AVG(A.price) AS av, COUNT(DISTINCT A.price) AS cd, B.price AS b ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B) DEFINE A AS A.price > 10, B AS B.price <= 10")
m("m_greedy_last_error", "MEASURES A.price AS a ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+) DEFINE B AS B.price > A.price", error=True)
m("m_sum_in_define", "MEASURES FIRST(A.price) AS f, SUM(A.price) AS s, B.price AS b ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A+ B) DEFINE A AS SUM(A.price) < 40, B AS B.price > 5 OR B.price IS NULL")
m("m_expressions", "MEASURES A.price * 2 + B.price AS x, UPPER(A.sym) AS u, B.ts AS e, CAST(B.ts AS STRING) AS st ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A B) DEFINE A AS MOD(A.price, 2) = 1, B AS ABS(B.price - A.price) > 4")


# functions
@case()
def u_udaf_in_windows(t):
    late(t)

    class Sum2(udfs.AggregateFunction):
        def create_accumulator(self):
            return [0]

        def accumulate(self, acc, v):
            acc[0] += v * v

        def retract(self, acc, v):
            acc[0] -= v * v

        def merge(self, acc, accs):
            for a in accs:
                acc[0] += a[0]

        def get_value(self, acc):
            return acc[0]

        def get_accumulator_type(self):
            return DataTypes.ARRAY(DataTypes.BIGINT())

        def get_result_type(self):
            return DataTypes.BIGINT()
    t.create_temporary_function("sum2", udfs.udaf(Sum2()))
    return "SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, k, sum2(v) AS q FROM e GROUP BY TUMBLE(ts, INTERVAL '10' SECOND), k"


@case()
def u_pandas_udaf_window(t):
    late(t)
    mean = udfs.udaf(lambda v: v.mean(), result_type=DataTypes.DOUBLE(), func_type="pandas")
    t.create_temporary_function("mean_udaf", mean)
    return "SELECT TUMBLE_START(ts, INTERVAL '20' SECOND) AS s, mean_udaf(v) AS q FROM e GROUP BY TUMBLE(ts, INTERVAL '20' SECOND)"


@case(mode="batch")
def u_pandas_udaf_batch(t):
    orders(t)
    t.create_temporary_function("mean_udaf", udfs.udaf(lambda v: v.max(), result_type=DataTypes.DOUBLE(), func_type="pandas"))
    return "SELECT item, mean_udaf(price) AS q FROM orders WHERE item IS NOT NULL GROUP BY item"


class Views(udfs.AggregateFunction):
    def create_accumulator(self):
        return Row(table.ListView(), table.MapView(), 0) if hasattr(table, "ListView") else None

    def accumulate(self, acc, v):
        acc[0].add(v)
        acc[1][v] = (acc[1][v] if v in acc[1] else 0) + 1

    def get_value(self, acc):
        return ",".join(acc[0]) + "|" + str(len(list(acc[1].items())))

    def get_accumulator_type(self):
        return DataTypes.ROW([DataTypes.FIELD("l", DataTypes.LIST_VIEW(DataTypes.STRING())), DataTypes.FIELD("m", DataTypes.MAP_VIEW(DataTypes.STRING(), DataTypes.BIGINT())), DataTypes.FIELD("n", DataTypes.BIGINT())])

    def get_result_type(self):
        return DataTypes.STRING()


@case()
def u_views(t):
    orders(t)
    t.create_temporary_function("views", udfs.udaf(Views()))
    return "SELECT item, views(customer) AS v FROM orders WHERE customer IS NOT NULL GROUP BY item"


@case()
def x_slide_window_api(t):
    late(t)
    return t.from_path("e").window(Slide.over(lit(10).seconds).every(lit(5).seconds).on(col("ts")).alias("w")).group_by(col("w"), col("k")).select(col("k"), col("w").start.alias("s"), col("v").sum.alias("t"))


@case()
def x_session_window_api(t):
    late(t)
    return t.from_path("e").window(Session.with_gap(lit(4).seconds).on(col("ts")).alias("w")).group_by(col("w"), col("k")).select(col("k"), col("w").start.alias("s"), col("w").end.alias("z"), col("v").count.alias("t"))


@case()
def x_over_rows_api(t):
    clicks(t)
    return (t.from_path("clicks").over_window(Over.partition_by(col("who")).order_by(col("ts")).preceding(expressions.row_interval(2)).following(expressions.CURRENT_ROW).alias("w"))
            .select(col("who"), col("n").sum.over(col("w")).alias("s")))


@case()
def x_distinct_api(t):
    orders(t)
    return t.from_path("orders").select(col("item")).distinct()


@case()
def x_minus_api(t):
    orders(t), prices(t)
    return t.from_path("orders").select(col("item")).minus(t.from_path("prices").select(col("item")))


# more of the same
q("b_two_level_interval", f"SELECT window_start, window_end, COUNT(*) AS c, SUM(w) AS s FROM TABLE(TUMBLE((SELECT a.ts AS ts, b.v AS w FROM e a JOIN f b ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '3' SECOND AND b.ts + INTERVAL '1' SECOND), DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY window_start, window_end",
  lambda t: events(t, "e", "k STRING, v INT", [(1, "a", 1), (5, "b", 2), (9, "a", 3), (30, "z", 4)]), lambda t: events(t, "f", "k STRING, v INT", [(2, "a", 10), (4, "a", 11), (5, "b", 12), (6, "b", 13), (40, "y", 14)]))
q("b_union_windows", f"SELECT window_start, SUM(v) AS s, COUNT(*) AS c FROM TABLE(TUMBLE((SELECT ts, v FROM e UNION ALL SELECT ts, n FROM clicks), DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end", clicks, lambda t: events(t, "e", "k STRING, v INT", [(1, "a", 1), (5, "b", 2), (19, "a", 3), (60, "z", 4)]))
q("b_window_null_key", f"SELECT window_start, k, SUM(v) AS s FROM {T.format('e', 10)} GROUP BY window_start, window_end, k", lambda t: events(t, "e", "k STRING, v INT", [(1, None, 1), (5, "b", None), (7, None, 3), (30, None, 4)]))
q("b_max_time", "SELECT k, MAX(ts) AS m, MIN(ts) AS n, COUNT(*) AS c FROM e GROUP BY k", late)
q("b_count_distinct_pair", "SELECT COUNT(DISTINCT item, customer) AS c FROM orders", orders, mode="batch")
q("b_row_key", "SELECT CAST(r AS STRING) AS r, c FROM (SELECT ROW(item, qty) AS r, COUNT(*) AS c FROM orders GROUP BY ROW(item, qty))", orders)
q("b_over_then_window", f"SELECT window_start, MAX(s) AS m FROM TABLE(TUMBLE((SELECT ts, SUM(n) OVER (PARTITION BY who ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM clicks), DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end", clicks)
q("b_lead_error", "SELECT who, LEAD(n) OVER (PARTITION BY who ORDER BY ts) AS b FROM clicks", clicks, error=True)
q("b_over_nontime", "SELECT who, n, SUM(n) OVER (PARTITION BY who ORDER BY n) AS b FROM clicks", clicks)
q("b_over_nontime_rows", "SELECT who, n, SUM(n) OVER (PARTITION BY page ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS b, COUNT(*) OVER (PARTITION BY page ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS c FROM clicks", clicks)
q("b_over_nontime_desc", "SELECT who, n, MAX(n) OVER (PARTITION BY page ORDER BY n DESC) AS b FROM clicks", clicks)
q("b_row_number_all", "SELECT id, qty, ROW_NUMBER() OVER (PARTITION BY item ORDER BY qty) AS r FROM orders", orders)
q("b_dedup_proc_last", "SELECT k, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY p DESC) AS rn FROM o) WHERE rn = 1",
  lambda t: (t.create_temporary_view("seen", t.from_elements([(i, k) for i, k in enumerate("abacabad")], ["id", "k"])), t.create_temporary_view("o", t.sql_query("SELECT id, k, PROCTIME() AS p FROM seen"))))
q("b_hop_error", "SELECT window_start, COUNT(*) AS c FROM TABLE(HOP(TABLE e, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '10' SECOND)) GROUP BY window_start, window_end", late, error=True)
q("b_cumulate_error", "SELECT window_start, COUNT(*) AS c FROM TABLE(CUMULATE(TABLE e, DESCRIPTOR(ts), INTERVAL '3' SECOND, INTERVAL '10' SECOND)) GROUP BY window_start, window_end", late, error=True)
q("b_top_text_desc", "SELECT customer, item, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY customer DESC, id) AS rn FROM orders) WHERE rn <= 2", orders)
q("b_nested_top", "SELECT item, id FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY qty DESC, id) AS r2 FROM (SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY qty DESC, id) AS rn FROM orders) WHERE rn <= 2)) WHERE r2 <= 3", orders)
q("b_join_rowtime", "SELECT a.who, a.ts, b.n AS bn FROM clicks a JOIN clicks b ON a.who = b.who AND a.n = b.n", clicks)
q("b_exists_interval", "SELECT v FROM e a WHERE EXISTS (SELECT 1 FROM f b WHERE a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '3' SECOND)",
  lambda t: events(t, "e", "k STRING, v INT", [(1, "a", 1), (5, "b", 2), (9, "a", 3), (30, "z", 4)]), lambda t: events(t, "f", "k STRING, v INT", [(2, "a", 10), (4, "a", 11), (5, "b", 12), (6, "b", 13), (40, "y", 14)]))
q("b_json_agg", "SELECT item, JSON_ARRAYAGG(id) AS a, JSON_OBJECTAGG(KEY CAST(id AS STRING) VALUE qty) AS o FROM orders WHERE item IN ('cup', 'ink') GROUP BY item", orders)
q("b_json_null", "SELECT JSON_ARRAYAGG(qty NULL ON NULL) AS a, JSON_ARRAYAGG(qty) AS b FROM orders WHERE item = 'pen'", orders)
q("b_window_agg_then_join", f"SELECT w.window_start, w.k, w.s, c.city FROM (SELECT window_start, window_end, k, SUM(v) AS s FROM {T.format('e', 10)} GROUP BY window_start, window_end, k) w LEFT JOIN customers c ON w.k = c.name", late, customers)
q("b_window_union", f"SELECT window_start, k, SUM(v) AS s FROM (SELECT * FROM {T.format('e', 10)} WHERE k = 'a' UNION ALL SELECT * FROM {T.format('e', 10)} WHERE k = 'b') GROUP BY window_start, window_end, k", late)
q("b_match_rowtime_window", "SELECT window_start, COUNT(*) AS c FROM TABLE(TUMBLE((SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY who ORDER BY ts MEASURES A.n AS a, MATCH_ROWTIME() AS rt ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE B AS B.n > A.n)), DESCRIPTOR(rt), INTERVAL '20' SECOND)) GROUP BY window_start, window_end", clicks)
q("b_match_group", "SELECT * FROM clicks MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(A.n) AS a, LAST(B.n) AS b, C.n AS c ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN ((A B){2} C) DEFINE A AS A.n < 6, C AS C.n > 1)", clicks)
q("b_match_subset_text", "SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY who ORDER BY ts MEASURES A.page AS a, LAST(B.page) AS b, COUNT(*) AS n, LAST(B.n) - FIRST(A.n) AS d ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW PATTERN (A B{1,2}? C) DEFINE A AS A.page = 'home', B AS B.page <> 'pay', C AS C.n > 3)", clicks)
q("b_group_rowtime_trunc", "SELECT FLOOR(ts TO MINUTE) AS m, COUNT(*) AS c FROM clicks GROUP BY FLOOR(ts TO MINUTE)", clicks)
q("b_distinct_two", "SELECT DISTINCT item, customer FROM orders", orders)
q("b_left_join_many", "SELECT p.item, o.id FROM prices p LEFT JOIN orders o ON p.item = o.item AND o.qty > 2", prices, orders)
q("b_anti_updating", "SELECT item FROM stock s WHERE NOT EXISTS (SELECT 1 FROM prices p WHERE p.item = s.item)", stock, prices)
q("b_in_updating", "SELECT item FROM orders WHERE item IN (SELECT item FROM prices WHERE price > 10)", orders, prices)
q("b_scalar_corr", "SELECT id, (SELECT MAX(price) FROM prices p WHERE p.item = o.item) AS m FROM orders o", orders, prices)
q("b_limit_updating", "SELECT item, SUM(price) AS s FROM prices GROUP BY item LIMIT 2", prices, mode="batch")
q("b_order_batch_mixed", "SELECT item, qty, id FROM orders ORDER BY item DESC NULLS FIRST, qty ASC NULLS LAST, id", orders, mode="batch", order="list")
q("b_temporal_where", "SELECT o.id, r.rate FROM o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.cur = r.cur WHERE r.rate IS NULL OR r.rate > 100",
  lambda t: events(t, "o", "id INT, cur STRING", [(0, 0, "eur"), (2, 1, "eur"), (5, 2, "usd"), (12, 3, "eur"), (15, 4, "yen"), (25, 5, "usd"), (26, 6, "yen")]), lambda t: versions(t, "rates", "cur STRING, rate INT", [("+I", 0, "eur", 100), ("+I", 1, "usd", 90), ("-U", 0, "eur", 100), ("+U", 10, "eur", 105), ("-D", 20, "usd", 90), ("+I", 24, "yen", 1)], key=("cur",)))
q("b_sum_bool_error", "SELECT SUM(qty > 1) AS s FROM orders", orders, error=True)
q("b_window_offset_neg", "SELECT window_start, window_end, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '-3' SECOND)) GROUP BY window_start, window_end", late)
q("b_session_agg_many", "SELECT k, window_start, COUNT(DISTINCT v) AS d, MAX(v) AS m, LISTAGG(CAST(v AS STRING)) AS l FROM TABLE(SESSION(TABLE e PARTITION BY k, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end", lambda t: late(t, 30))
q("b_last_value_order", "SELECT item, LAST_VALUE(customer) AS l, FIRST_VALUE(qty) AS f, COUNT(customer) AS c FROM orders GROUP BY item", orders)
q("b_order_ts_limit", "SELECT ts, v FROM e ORDER BY ts LIMIT 3", late)
q("b_order_ts_desc_error", "SELECT ts, v FROM e ORDER BY ts DESC", late, error=True)
q("b_group_by_all_types", "SELECT b, d, dc, COUNT(*) AS c FROM (VALUES (TRUE, DATE '2020-01-01', CAST(1.50 AS DECIMAL(5, 2))), (FALSE, DATE '2020-01-02', CAST(1.50 AS DECIMAL(5, 2))), (TRUE, DATE '2020-01-01', CAST(1.5 AS DECIMAL(5, 2)))) AS v(b, d, dc) GROUP BY b, d, dc")
q("b_ts_key", "SELECT a.ts, COUNT(*) AS c FROM clicks a JOIN clicks b ON a.ts = b.ts GROUP BY a.ts", clicks)


@case()
def b_count_window_api(t):
    t.create_temporary_view("seen", t.from_elements([(i, k) for i, k in enumerate("abacabadabab")], ["id", "k"]))
    t.create_temporary_view("o", t.sql_query("SELECT id, k, PROCTIME() AS p FROM seen"))
    return t.from_path("o").window(Tumble.over(expressions.row_interval(2)).on(col("p")).alias("w")).group_by(col("w"), col("k")).select(col("k"), col("id").sum.alias("s"))


@case()
def b_count_slide_api(t):
    t.create_temporary_view("seen", t.from_elements([(i, k) for i, k in enumerate("abacabadabab")], ["id", "k"]))
    t.create_temporary_view("o", t.sql_query("SELECT id, k, PROCTIME() AS p FROM seen"))
    return t.from_path("o").window(Slide.over(expressions.row_interval(3)).every(expressions.row_interval(2)).on(col("p")).alias("w")).group_by(col("w"), col("k")).select(col("k"), col("id").sum.alias("s"))


class Views(udfs.AggregateFunction):
    def create_accumulator(self):
        return Row(table.ListView(), table.MapView(), 0)

    def accumulate(self, acc, v):
        acc[0].add(v)
        acc[1][v] = (acc[1][v] if v in acc[1] else 0) + 1

    def get_value(self, acc):
        return ",".join(acc[0]) + "|" + str(len(list(acc[1].items())))

    def get_accumulator_type(self):
        return DataTypes.ROW([DataTypes.FIELD("l", DataTypes.LIST_VIEW(DataTypes.STRING())), DataTypes.FIELD("m", DataTypes.MAP_VIEW(DataTypes.STRING(), DataTypes.BIGINT())), DataTypes.FIELD("n", DataTypes.BIGINT())])

    def get_result_type(self):
        return DataTypes.STRING()


@case()
def b_views(t):
    orders(t)
    t.create_temporary_function("vw", udfs.udaf(Views()))
    return "SELECT item, vw(customer) AS v FROM orders WHERE customer IS NOT NULL GROUP BY item"


# and in BATCH mode
q("c_window_proctime_col", "SELECT k, v FROM (SELECT *, PROCTIME() AS p FROM e) WHERE p IS NOT NULL", late)
q("c_group_two_windows", f"SELECT a.window_start, a.c, b.c AS d FROM (SELECT window_start, window_end, COUNT(*) AS c FROM {T.format('clicks', 10)} GROUP BY window_start, window_end) a FULL JOIN (SELECT window_start, window_end, COUNT(*) AS c FROM {T.format('clicks', 10)} WHERE n > 4 GROUP BY window_start, window_end) b ON a.window_start = b.window_start AND a.window_end = b.window_end", clicks)
q("c_having_no_group", "SELECT SUM(qty) AS s FROM orders HAVING COUNT(*) > 3", orders)
q("c_count_filter_nulls", "SELECT COUNT(*) FILTER (WHERE qty IS NULL) AS a, COUNT(qty) FILTER (WHERE price IS NULL) AS b, MAX(qty) FILTER (WHERE customer = 'zoe') AS c FROM orders", orders)
q("c_union_agg", "SELECT k, SUM(n) AS s FROM (SELECT item AS k, price AS n FROM prices UNION ALL SELECT item, n FROM stock) GROUP BY k", prices, stock)
q("c_join_agg_join", "SELECT x.item, x.c, p.price FROM (SELECT o.item, COUNT(*) AS c FROM orders o JOIN stock s ON o.item = s.item GROUP BY o.item) x JOIN prices p ON x.item = p.item", orders, stock, prices)
q("c_top1_per_group_agg", "SELECT item, id, price FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY price DESC NULLS LAST, id) AS rn FROM orders) WHERE rn = 1", orders)
q("c_top_join", "SELECT t.item, t.id, p.price FROM (SELECT item, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY item ORDER BY qty DESC, id) AS rn FROM orders) WHERE rn <= 1) t JOIN prices p ON t.item = p.item", orders, prices)
q("c_dedup_join", "SELECT d.who, d.page, c.city FROM (SELECT who, page FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts DESC) AS rn FROM clicks) WHERE rn = 1) d LEFT JOIN customers c ON d.who = c.name", clicks, customers)
q("c_distinct_agg_join", "SELECT COUNT(DISTINCT o.customer) AS c, SUM(DISTINCT o.qty) AS s FROM orders o JOIN prices p ON o.item = p.item", orders, prices)
q("c_case_agg", "SELECT CASE WHEN price > 11 THEN 'hi' ELSE 'lo' END AS g, COUNT(*) AS c, MIN(price) AS m FROM prices GROUP BY CASE WHEN price > 11 THEN 'hi' ELSE 'lo' END", prices)
q("c_full_join_null_safe", "SELECT a.item AS x, b.item AS y FROM (SELECT item FROM orders WHERE id > 9) a FULL JOIN stock b ON a.item IS NOT DISTINCT FROM b.item", orders, stock)
q("c_left_semi_agg", "SELECT COUNT(*) AS c FROM orders WHERE item IN (SELECT item FROM prices WHERE price < 26)", orders, prices)
q("c_not_exists_agg", "SELECT customer, COUNT(*) AS c FROM orders o WHERE NOT EXISTS (SELECT 1 FROM stock s WHERE s.item = o.item AND s.n > 4) GROUP BY customer", orders, stock)
q("c_lateral_agg_batch", "SELECT c.name, (SELECT SUM(o.qty) FROM orders o WHERE o.customer = c.name) AS s, EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.name AND o.qty > 5) AS e FROM customers c", orders, customers, mode="batch")
q("c_batch_joins_all", "SELECT o.id, p.name FROM orders o FULL JOIN customers p ON o.customer = p.name AND o.qty > 2", orders, customers, mode="batch")
q("c_batch_window_join", f"SELECT l.who, r.who AS rw FROM {T.format('clicks', 10)} l JOIN {T.format('clicks', 10)} r ON l.window_start = r.window_start AND l.window_end = r.window_end AND l.n = r.n", clicks, mode="batch")
q("c_batch_session", "SELECT who, window_start, window_end, SUM(n) AS s FROM TABLE(SESSION(TABLE clicks PARTITION BY who, DESCRIPTOR(ts), INTERVAL '8' SECOND)) GROUP BY who, window_start, window_end", clicks, mode="batch")
q("c_batch_interval", "SELECT a.n, b.n AS m FROM clicks a JOIN clicks b ON a.who = b.who AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND", clicks, mode="batch")
q("c_batch_match", "SELECT * FROM clicks MATCH_RECOGNIZE (PARTITION BY who ORDER BY ts MEASURES A.n AS a, B.n AS b ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE B AS B.n > A.n) AS m", clicks, mode="batch")
q("c_batch_dedup", "SELECT who, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY ts DESC) AS rn FROM clicks) WHERE rn = 1", clicks, mode="batch")
q("c_batch_group_window", "SELECT TUMBLE_START(ts, INTERVAL '20' SECOND) AS s, COUNT(*) AS c FROM clicks GROUP BY TUMBLE(ts, INTERVAL '20' SECOND)", clicks, mode="batch")
q("c_batch_limit", "SELECT COUNT(*) AS c FROM (SELECT * FROM orders LIMIT 5)", orders, mode="batch")
q("c_batch_order_agg", "SELECT item, COUNT(*) AS c FROM orders GROUP BY item ORDER BY c DESC, item LIMIT 3", orders, mode="batch", order="list")
q("c_batch_set_order", "SELECT item FROM orders UNION SELECT name FROM customers ORDER BY item", orders, customers, mode="batch", order="list")
q("c_batch_over_agg", "SELECT item, s, SUM(s) OVER (ORDER BY item) AS run FROM (SELECT item, SUM(qty) AS s FROM orders GROUP BY item)", orders, mode="batch")
q("c_batch_first_last", "SELECT FIRST_VALUE(id) AS f, LAST_VALUE(id) AS l, MIN(customer) AS m FROM orders", orders, mode="batch")
q("c_over_first_last_range", "SELECT who, ts, FIRST_VALUE(n) OVER w AS f, LAST_VALUE(n) OVER w AS l, AVG(n) OVER w AS a FROM clicks WINDOW w AS (PARTITION BY who ORDER BY ts RANGE BETWEEN INTERVAL '20' SECOND PRECEDING AND CURRENT ROW)", clicks)
q("c_over_no_partition", "SELECT n, SUM(n) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM clicks", clicks)
q("c_window_agg_on_filter_time", f"SELECT window_start, COUNT(*) AS c FROM {T.format('clicks', 10)} WHERE window_start >= TIMESTAMP '2024-03-01 09:00:10' GROUP BY window_start, window_end", clicks)
q("c_window_expr_key", f"SELECT window_start, UPPER(k) AS u, SUM(v) AS s FROM {T.format('e', 10)} GROUP BY window_start, window_end, UPPER(k)", late)
q("c_cumulate_distinct", "SELECT window_start, window_end, COUNT(DISTINCT k) AS d FROM TABLE(CUMULATE(TABLE e, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '30' SECOND)) GROUP BY window_start, window_end", lambda t: late(t, 5))
q("c_hop_rows", "SELECT v, window_start FROM TABLE(HOP(TABLE e, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))", late)
q("c_interval_outer_unbounded_error", "SELECT a.v FROM e a LEFT JOIN f b ON a.k = b.k AND b.ts > a.ts",
  lambda t: events(t, "e", "k STRING, v INT", [(1, "a", 1), (5, "b", 2)]), lambda t: events(t, "f", "k STRING, v INT", [(2, "a", 10), (4, "b", 11)]))
q("c_upsert_window_error", "SELECT window_start, COUNT(*) AS c FROM TABLE(TUMBLE(TABLE rates, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end", lambda t: versions(t, "rates", "cur STRING, rate INT", [("+I", 0, "eur", 100), ("+I", 1, "usd", 90), ("-U", 0, "eur", 100), ("+U", 10, "eur", 105), ("-D", 20, "usd", 90)], key=("cur",)))
