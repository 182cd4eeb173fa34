"""What a library takes for the work of one batch of a query, Arrow in and Arrow out; one line of JSON.

python kernels.py LIBRARY ROWS: LIBRARY is one of LIBRARIES, ROWS the rows of a batch
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from statistics import median

import pyarrow as pa
import pyarrow.compute as pc

LEAST_SECONDS = 0.5
Work = dict[str, Callable[[pa.RecordBatch, pa.RecordBatch], object]]


def batches(rows: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """A batch of events, and one of another stream that has one row for each of their ids."""
    n = pa.array(range(rows), pa.int64())
    few = pc.cast(pc.subtract(n, pc.multiply(pc.divide(n, 1000), 1000)), pa.int64())
    value = pc.bit_wise_and(pc.multiply(n, 7919), 8191)
    name = pc.binary_join_element_wise(pa.scalar("name "), pc.cast(few, pa.string()), "")
    events = pa.RecordBatch.from_arrays([n, few, value, name], ["n", "k", "v", "name"])
    return events, pa.RecordBatch.from_arrays([pc.add(n, rows // 2), value], ["id", "w"])


def with_pyarrow() -> Work:
    def filtered(batch: pa.RecordBatch, _: pa.RecordBatch) -> object:
        kept = batch.filter(pc.equal(pc.bit_wise_and(batch["n"], 3), 0))
        return [kept["n"], pc.add(kept["k"], pc.multiply(kept["v"], 2))]

    def grouped(key: str) -> Callable[[pa.RecordBatch, pa.RecordBatch], object]:
        def work(batch: pa.RecordBatch, _: pa.RecordBatch) -> object:
            groups = pa.TableGroupBy(pa.Table.from_batches([batch]), key, use_threads=False)
            return groups.aggregate([("v", "sum"), ([], "count_all"), ("v", "max")])

        return work

    def joined(batch: pa.RecordBatch, other: pa.RecordBatch) -> object:
        left, right = pa.Table.from_batches([batch]), pa.Table.from_batches([other])
        return left.join(right, "n", "id", join_type="inner", use_threads=False)

    def ordered(batch: pa.RecordBatch, _: pa.RecordBatch) -> object:
        return batch.take(pc.sort_indices(batch, [("k", "ascending"), ("v", "descending")]))

    return works(filtered, grouped, joined, ordered)


def with_polars() -> Work:
    import polars as pl

    def frame(batch: pa.RecordBatch) -> pl.LazyFrame:
        return pl.from_arrow(batch).lazy()

    def filtered(batch: pa.RecordBatch, _: pa.RecordBatch) -> object:
        kept = frame(batch).filter((pl.col("n") & 3) == 0)
        return kept.select("n", (pl.col("k") + pl.col("v") * 2).alias("x")).collect().to_arrow()

    def grouped(key: str) -> Callable[[pa.RecordBatch, pa.RecordBatch], object]:
        wanted = [pl.col("v").sum(), pl.len(), pl.col("v").max().alias("m")]
        return lambda batch, _: frame(batch).group_by(key).agg(wanted).collect().to_arrow()

    def joined(batch: pa.RecordBatch, other: pa.RecordBatch) -> object:
        return frame(batch).join(frame(other), left_on="n", right_on="id").collect().to_arrow()

    def ordered(batch: pa.RecordBatch, _: pa.RecordBatch) -> object:
        return frame(batch).sort(["k", "v"], descending=[False, True]).collect().to_arrow()

    return works(filtered, grouped, joined, ordered)


def with_duckdb() -> Work:
    import duckdb

    connection = duckdb.connect(config={"threads": 1})

    def query(text: str) -> Callable[[pa.RecordBatch, pa.RecordBatch], object]:
        def work(batch: pa.RecordBatch, other: pa.RecordBatch) -> object:
            connection.register("batch", pa.Table.from_batches([batch]))
            connection.register("other", pa.Table.from_batches([other]))
            return connection.sql(text).to_arrow_table()

        return work

    return in_sql(query)


def with_datafusion() -> Work:
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(1))

    def query(text: str) -> Callable[[pa.RecordBatch, pa.RecordBatch], object]:
        def work(batch: pa.RecordBatch, other: pa.RecordBatch) -> object:
            for name, one in (("batch", batch), ("other", other)):
                context.deregister_table(name)
                context.register_record_batches(name, [[one]])
            return context.sql(text).collect()

        return work

    return in_sql(query)


def in_sql(query: Callable[[str], Callable[[pa.RecordBatch, pa.RecordBatch], object]]) -> Work:
    def grouped(key: str) -> Callable[[pa.RecordBatch, pa.RecordBatch], object]:
        return query(f"SELECT {key}, sum(v), count(*), max(v) FROM batch GROUP BY {key}")

    return works(
        query("SELECT n, k + v * 2 AS x FROM batch WHERE (n & 3) = 0"),
        grouped,
        query("SELECT batch.*, w FROM batch JOIN other ON n = id"),
        query("SELECT * FROM batch ORDER BY k, v DESC"),
    )


def works(filtered: Callable, grouped: Callable, joined: Callable, ordered: Callable) -> Work:
    return {
        "filter and project": filtered,
        "group by 1,000 keys": grouped("k"),
        "group by a text of 1,000": grouped("name"),
        "group by, every key new": grouped("n"),
        "join of two batches": joined,
        "order": ordered,
    }


LIBRARIES = {"pyarrow": with_pyarrow, "polars": with_polars, "duckdb": with_duckdb, "datafusion": with_datafusion}


def micros(work: Callable[[], object]) -> float:
    """The median of what it takes, in microseconds, after a first time."""
    work()
    taken, until = [], time.perf_counter() + LEAST_SECONDS
    while time.perf_counter() < until or len(taken) < 3:
        began = time.perf_counter()
        work()
        taken.append((time.perf_counter() - began) * 1e6)
    return median(taken)


def main(library: str, rows: int) -> None:
    events, others = batches(rows)
    found = {name: micros(lambda work=work: work(events, others)) for name, work in LIBRARIES[library]().items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
