"""The two best sellers of every ten minutes: orders as a stream become a table, SQL counts, and a stream comes out."""

from penstock.common import Duration, Row, Types, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.table import DataTypes, Schema, StreamTableEnvironment
from penstock.table.expression.function_declarations import udf

ORDER = Types.ROW_NAMED(["at", "item", "pieces"], [Types.LONG(), Types.STRING(), Types.INT()])
ITEMS = ("pen", "ink", "cap", "pad")
BEST_SELLERS = """
    SELECT window_start, label(item) AS item, pieces, place
    FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY pieces DESC, item) AS place
        FROM (
            SELECT window_start, window_end, item, SUM(pieces) AS pieces
            FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' MINUTES))
            GROUP BY window_start, window_end, item
        )
    )
    WHERE place <= 2
"""


@udf(result_type=DataTypes.STRING())
def label(item: str) -> str:
    """Functions in Python are called as any other."""
    return item.capitalize()


def order(number: int) -> Row:
    """An order every 15 seconds."""
    return Row(number * 15_000, ITEMS[number * number % 7 % 4], number % 3 + 1)


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
    tables = StreamTableEnvironment.create(environment)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(30)).with_timestamp_field("at")
    orders = environment.from_collection([order(number) for number in range(100)], ORDER)
    orders = orders.assign_timestamps_and_watermarks(strategy)

    schema = (
        Schema.new_builder()
        .column("at", DataTypes.BIGINT())
        .column("item", DataTypes.STRING())
        .column("pieces", DataTypes.INT())
        .column_by_metadata("ts", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
        .watermark("ts", "SOURCE_WATERMARK()")
        .build()
    )
    tables.create_temporary_view("orders", orders, schema)
    tables.create_temporary_function("label", label)
    tables.get_config().set_local_timezone("UTC")

    best = tables.to_data_stream(tables.sql_query(BEST_SELLERS))
    with best.execute_and_collect() as rows:
        for row in sorted(rows, key=lambda row: (row[0], row[3])):
            print(f"{row[0]:%H:%M} {row[3]}. {row[1]}: {row[2]} pieces")


if __name__ == "__main__":
    main()
