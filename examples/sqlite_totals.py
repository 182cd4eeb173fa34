"""A table of SQLite read in parts, and the total of each customer kept in another, exactly once."""

import sqlite3
import tempfile
from pathlib import Path

from penstock.common import Types, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExactlyOnceOptions, JdbcSink, JdbcSource

ORDERS = [("ann", 10), ("bo", 5), ("ann", 7), ("cy", 1), ("bo", 4), ("ann", 3)]
ORDER = Types.ROW_NAMED(["id", "customer", "amount"], [Types.LONG(), Types.STRING(), Types.LONG()])
TOTAL = Types.ROW_NAMED(["customer", "total"], [Types.STRING(), Types.LONG()])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shop.db"
        with sqlite3.connect(file) as database:
            database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount INTEGER)")
            database.executemany("INSERT INTO orders (customer, amount) VALUES (?, ?)", ORDERS)
            database.execute("CREATE TABLE totals (customer TEXT PRIMARY KEY, total INTEGER)")
        run(JdbcConnectionOptions(f"jdbc:sqlite:{file}"))
        with sqlite3.connect(file) as database:
            for customer, total in database.execute("SELECT customer, total FROM totals ORDER BY customer"):
                print(customer, total)


def run(options: JdbcConnectionOptions) -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=1)
    source = JdbcSource(options, "SELECT id, customer, amount FROM orders", ORDER, key="id", partitions=2)
    orders = environment.from_source(source, WatermarkStrategy.no_watermarks(), "orders")
    totals = orders.map(lambda order: (order.customer, order.amount), TOTAL).key_by("customer").sum("total")
    totals.sink_to(
        JdbcSink.upsert("totals", None, ["customer"], TOTAL, options, exactly_once_options=JdbcExactlyOnceOptions())
    )
    environment.execute("totals")


if __name__ == "__main__":
    main()
