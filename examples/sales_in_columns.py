"""Totals of sales for every shop and ten minutes, from Parquet files to Parquet files, in batches of columns."""

# pyarrow makes the functions of `pc` when it is imported, so that a type checker does not see them.
# pyright: reportAttributeAccessIssue=false

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.common import Duration, Time, Types, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource
from penstock.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from penstock.datastream.window import TumblingEventTimeWindows

SALE = Types.ROW_NAMED(["shop", "at", "pieces", "price"], [Types.STRING(), Types.LONG(), Types.INT(), Types.DOUBLE()])
TOTAL = Types.ROW_NAMED(["shop", "at", "total"], [Types.STRING(), Types.LONG(), Types.DOUBLE()])


def total(batch: pa.RecordBatch) -> pa.RecordBatch:
    """What each sale is worth: called for thousands of sales at once."""
    worth = pc.multiply(batch["pieces"], batch["price"])
    return pa.RecordBatch.from_arrays([batch["shop"], batch["at"], worth], names=["shop", "at", "total"])


def sales(path: Path) -> None:
    """10,000 sales in four shops, ten a second."""
    numbers = range(10_000)
    pq.write_table(
        pa.table(
            {
                "shop": [("Oslo", "Bergen", "Tromsø", "Bodø")[number % 4] for number in numbers],
                "at": [number * 100 for number in numbers],
                "pieces": pa.array([number % 5 for number in numbers], pa.int32()),
                "price": [(2.5, 3.0, 1.25, 4.0)[number % 4] for number in numbers],
            }
        ),
        path,
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder))


def run(folder: Path) -> None:
    sales(folder / "sales.parquet")
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
    # The event time is a column, so that no function has to look at each sale.
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5)).with_timestamp_field("at")
    files = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(SALE), str(folder / "sales.parquet"))
    written = FileSink.for_bulk_format(str(folder / "totals"), ParquetBulkWriters.for_row_type(TOTAL))
    (
        environment.from_source(files.build(), strategy, "sales")
        .filter_batches(lambda batch: pc.greater(batch["pieces"], 0))
        .map_batches(total, TOTAL)
        .key_by("shop")
        .window(TumblingEventTimeWindows.of(Time.minutes(10)))
        .sum("total")
        .sink_to(written.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build())
    )
    environment.execute("sales in columns")
    for row in pq.read_table(folder / "totals").sort_by([("at", "ascending")]).to_pylist():
        print(f"from minute {row['at'] // 600_000 * 10}: {row['shop']} {row['total']:.2f}")


if __name__ == "__main__":
    main()
