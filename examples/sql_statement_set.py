"""Two INSERTs that read the same files of orders run as one job: totals by item, and the largest orders of pens."""

import json
import tempfile
from pathlib import Path

from penstock.table import EnvironmentSettings, TableEnvironment

ORDERS = [{"id": number, "item": ("pen", "ink", "cap")[number % 3], "qty": number % 8} for number in range(1, 101)]


def run(folder: Path) -> None:
    (folder / "orders").mkdir()
    (folder / "orders" / "part-0.json").write_text("\n".join(map(json.dumps, ORDERS)))
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for name, columns in {
        "orders": "id BIGINT, item STRING, qty INT",
        "totals": "item STRING, orders BIGINT, pieces INT",
        "many": "id BIGINT, item STRING, qty INT",
    }.items():
        tables.execute_sql(
            f"CREATE TABLE {name} ({columns}) "
            f"WITH ('connector' = 'filesystem', 'path' = '{folder / name}', 'format' = 'json')"
        )
    inserts = tables.create_statement_set()
    inserts.add_insert_sql("INSERT INTO totals SELECT item, COUNT(*), SUM(qty) FROM orders GROUP BY item")
    inserts.add_insert_sql("INSERT INTO many SELECT id, item, qty FROM orders WHERE qty = 7 AND item = 'pen'")
    inserts.execute().wait()
    for name in ("totals", "many"):
        with tables.execute_sql(f"SELECT * FROM {name}").collect() as rows:
            for row in sorted(rows, key=str):
                print(name, *row)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))


if __name__ == "__main__":
    main()
