"""The queries of the SQL benchmark, as text that Flink and Penstock both run: tables, views, and an INSERT each.

All input comes from the connector `datagen`: a sequence, of which computed columns make rows. The events of Nexmark
(persons, auctions, bids) are made so, too: of fifty events one is a person, three are auctions, and the rest are bids.
"""

from __future__ import annotations

SEQUENCE = """CREATE TABLE {name} (n BIGINT, {columns}) WITH ('connector' = 'datagen', 'rows-per-second' = '1000000000',
'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '{last}')"""
MOMENT = "ts AS CAST(TO_TIMESTAMP_LTZ(1700000000000 + n / 10, 3) AS TIMESTAMP(3))"
MARK = "WATERMARK FOR ts AS ts - INTERVAL '4' SECOND"


def sequence(name: str, rows: int, columns: str) -> str:
    return SEQUENCE.format(name=name, columns=columns, last=rows - 1)


def hole(columns: str) -> str:
    return f"CREATE TABLE hole ({columns}) WITH ('connector' = 'blackhole')"


def _plain(rows: int) -> list[str]:
    return [sequence("gen", rows, f"k AS MOD(n, 1000), v AS MOD(n * 7919, 10007), {MOMENT}, {MARK}")]


def _pair(rows: int) -> list[str]:
    columns = f"id AS n, {MOMENT}, {MARK}"
    return [sequence("orders", rows // 2, columns), sequence("shipments", rows // 2, columns)]


# --- Nexmark ---
EVENTS = f"""kind AS MOD(n, 50), epoch AS n / 50, r AS MOD(n * 48271, 2147483647), {MOMENT}, {MARK}"""
VIEWS = (
    """CREATE VIEW person AS SELECT epoch AS id, CONCAT('person ', CAST(MOD(r, 1000) AS STRING)) AS name,
    CONCAT('p', CAST(epoch AS STRING), '@example.org') AS email,
    CASE MOD(r, 5) WHEN 0 THEN 'or' WHEN 1 THEN 'id' WHEN 2 THEN 'ca' WHEN 3 THEN 'wa' ELSE 'az' END AS state,
    ts FROM events WHERE kind = 0""",
    """CREATE VIEW auction AS SELECT epoch * 3 + kind - 1 AS id,
    CONCAT('item ', CAST(MOD(r, 500) AS STRING)) AS item_name,
    MOD(r, 100) + 1 AS initial_bid, MOD(r, 1000) + 100 AS reserve, ts + INTERVAL '10' SECOND AS expires,
    epoch - MOD(r, 20) AS seller, 10 + MOD(r, 5) AS category, ts FROM events WHERE kind BETWEEN 1 AND 3""",
    """CREATE VIEW bid AS SELECT epoch * 3 - MOD(r, 100) AS auction, epoch - MOD(r, 50) AS bidder,
    100 + MOD(r, 10000) AS price,
    CASE MOD(r, 4) WHEN 0 THEN 'Google' WHEN 1 THEN 'Facebook' WHEN 2 THEN 'Baidu' ELSE 'Apple' END AS channel,
    CONCAT('https://www.example.org/', CAST(MOD(r, 997) AS STRING), '/item.htm?query=1&channel_id=',
    CAST(MOD(r, 9973) AS STRING)) AS url, ts FROM events WHERE kind > 3""",
)


def _nexmark(rows: int) -> list[str]:
    return [sequence("events", rows, EVENTS), *VIEWS]


BID = "auction BIGINT, bidder BIGINT, price BIGINT, ts TIMESTAMP(3)"
WINDOWED = "ws TIMESTAMP(3), we TIMESTAMP(3)"

QUERIES: dict[str, tuple] = {
    "filter": (_plain, "n BIGINT, k BIGINT", "SELECT n, k FROM gen WHERE MOD(n, 4) = 0"),
    "group by 1,000 keys": (_plain, "k BIGINT, c BIGINT, s BIGINT", "SELECT k, COUNT(*), SUM(n) FROM gen GROUP BY k"),
    "group by, every key new": (
        _plain,
        "n BIGINT, c BIGINT, s BIGINT",
        "SELECT n, COUNT(*), SUM(v) FROM gen GROUP BY n",
    ),
    "tumbling windows": (
        _plain,
        f"{WINDOWED}, k BIGINT, c BIGINT, s BIGINT",
        "SELECT window_start, window_end, k, COUNT(*), SUM(n) FROM"
        " TABLE(TUMBLE(TABLE gen, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, k",
    ),
    "interval join": (
        _pair,
        "id BIGINT, ots TIMESTAMP(3), sts TIMESTAMP(3)",
        "SELECT o.id, o.ts, CAST(s.ts AS TIMESTAMP(3)) FROM orders o JOIN shipments s ON o.id = s.id AND s.ts BETWEEN"
        " o.ts AND o.ts + INTERVAL '5' SECOND",
    ),
    "top 3 per key": (
        _plain,
        "k BIGINT, n BIGINT, v BIGINT",
        "SELECT k, n, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC) AS rn FROM gen)"
        " WHERE rn <= 3",
    ),
    "deduplication": (
        _plain,
        "v BIGINT, n BIGINT",
        "SELECT v, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts) AS rn FROM gen) WHERE rn = 1",
    ),
    "q0": (_nexmark, BID, "SELECT auction, bidder, price, ts FROM bid"),
    "q1": (
        _nexmark,
        "auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), ts TIMESTAMP(3)",
        "SELECT auction, bidder, 0.908 * price, ts FROM bid",
    ),
    "q2": (_nexmark, "auction BIGINT, price BIGINT", "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0"),
    "q3": (
        _nexmark,
        "name STRING, state STRING, id BIGINT",
        "SELECT p.name, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id WHERE a.category = 10 AND"
        " (p.state = 'or' OR p.state = 'id' OR p.state = 'ca')",
    ),
    "q4": (
        _nexmark,
        "category BIGINT, f BIGINT",
        "SELECT q.category, AVG(q.final) FROM (SELECT MAX(b.price) AS final, a.category FROM auction a, bid b WHERE"
        " a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires GROUP BY a.id, a.category) q GROUP BY q.category",
    ),
    "q5": (
        _nexmark,
        "auction BIGINT, num BIGINT",
        "SELECT a.auction, a.num FROM (SELECT auction, COUNT(*) AS num, window_start AS ws, window_end AS we FROM"
        " TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)) GROUP BY auction,"
        " window_start, window_end) a JOIN (SELECT MAX(num) AS most, ws, we FROM (SELECT COUNT(*) AS num, window_start"
        " AS ws, window_end AS we FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
        " GROUP BY auction, window_start, window_end) c GROUP BY ws, we) m ON a.ws = m.ws AND a.we = m.we AND"
        " a.num >= m.most",
    ),
    "q7": (
        _nexmark,
        f"{BID}",
        "SELECT b.auction, b.bidder, b.price, b.ts FROM bid b JOIN (SELECT MAX(price) AS most, window_end AS we FROM"
        " TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end) m ON"
        " b.price = m.most WHERE b.ts BETWEEN m.we - INTERVAL '10' SECOND AND m.we",
    ),
    "q8": (
        _nexmark,
        "id BIGINT, name STRING, ws TIMESTAMP(3)",
        "SELECT p.id, p.name, p.ws FROM (SELECT id, name, window_start AS ws, window_end AS we FROM TABLE(TUMBLE(TABLE"
        " person, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY id, name, window_start, window_end) p JOIN (SELECT"
        " seller, window_start AS ws, window_end AS we FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(ts), INTERVAL '10'"
        " SECOND)) GROUP BY seller, window_start, window_end) a ON p.id = a.seller AND p.ws = a.ws AND p.we = a.we",
    ),
    "q9": (
        _nexmark,
        "id BIGINT, bidder BIGINT, price BIGINT",
        "SELECT id, bidder, price FROM (SELECT a.id, b.bidder, b.price, ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY"
        " b.price DESC, b.ts ASC) AS rn FROM auction a, bid b WHERE a.id = b.auction AND b.ts BETWEEN a.ts AND"
        " a.expires) WHERE rn <= 1",
    ),
    "q11": (
        _nexmark,
        f"bidder BIGINT, c BIGINT, {WINDOWED}",
        "SELECT bidder, COUNT(*), window_start, window_end FROM TABLE(SESSION(TABLE bid PARTITION BY bidder,"
        " DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY bidder, window_start, window_end",
    ),
    "q12": (
        _nexmark,
        f"bidder BIGINT, c BIGINT, {WINDOWED}",
        "SELECT bidder, COUNT(*), window_start, window_end FROM TABLE(TUMBLE((SELECT *, PROCTIME() AS p FROM bid),"
        " DESCRIPTOR(p), INTERVAL '10' SECOND)) GROUP BY bidder, window_start, window_end",
    ),
    "q15": (
        _nexmark,
        "d STRING, a BIGINT, b BIGINT, c BIGINT, e BIGINT, f BIGINT",
        "SELECT DATE_FORMAT(ts, 'yyyy-MM-dd'), COUNT(*), COUNT(*) FILTER (WHERE price < 10000), COUNT(DISTINCT bidder),"
        " COUNT(DISTINCT bidder) FILTER (WHERE price < 10000), COUNT(DISTINCT auction) FROM bid GROUP BY"
        " DATE_FORMAT(ts, 'yyyy-MM-dd')",
    ),
    "q16": (
        _nexmark,
        "channel STRING, d STRING, a BIGINT, b BIGINT, c BIGINT",
        "SELECT channel, DATE_FORMAT(ts, 'yyyy-MM-dd'), COUNT(*), COUNT(DISTINCT bidder), COUNT(DISTINCT auction) FROM"
        " bid GROUP BY channel, DATE_FORMAT(ts, 'yyyy-MM-dd')",
    ),
    "q17": (
        _nexmark,
        "auction BIGINT, d STRING, a BIGINT, b BIGINT, c BIGINT, e BIGINT, f BIGINT",
        "SELECT auction, DATE_FORMAT(ts, 'yyyy-MM-dd'), COUNT(*), MIN(price), MAX(price), AVG(price), SUM(price) FROM"
        " bid GROUP BY auction, DATE_FORMAT(ts, 'yyyy-MM-dd')",
    ),
    "q18": (
        _nexmark,
        BID,
        "SELECT auction, bidder, price, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY ts"
        " DESC) AS rn FROM bid) WHERE rn <= 1",
    ),
    "q19": (
        _nexmark,
        BID,
        "SELECT auction, bidder, price, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC)"
        " AS rn FROM bid) WHERE rn <= 10",
    ),
}


def statements(name: str, rows: int) -> tuple[list[str], str]:
    """The definitions of a query, and the INSERT that runs it."""
    tables, columns, query = QUERIES[name]
    return [*tables(rows), hole(columns)], f"INSERT INTO hole {query}"
