"""Penstock: files read, or read and written again, on a local Spark of two slots. Jobs: `read` and `copy`."""

import files_jobs as f
from workloads import PARALLELISM

from penstock.common import Types, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource, OutputFileConfig
from penstock.datastream.formats.json import JsonLinesEncoder, JsonLinesFormat
from penstock.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat

ROW = Types.ROW_NAMED(list(f.NAMES), [Types.LONG(), Types.LONG(), Types.DOUBLE(), Types.STRING()])


def source(format, path):
    if format == f.JSON:
        return FileSource.for_record_stream_format(JsonLinesFormat(ROW), path).build()
    return FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(ROW), path).build()


def sink(format, path):
    if format == f.JSON:
        builder = FileSink.for_row_format(path, JsonLinesEncoder(ROW))
    else:
        builder = FileSink.for_bulk_format(path, ParquetBulkWriters.for_row_type(ROW))
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    return builder.with_output_file_config(OutputFileConfig.builder().with_part_suffix(f".{format}").build()).build()


def run(job, format, path, output):
    env = StreamExecutionEnvironment.create_local_environment(PARALLELISM)
    rows = env.from_source(source(format, path), WatermarkStrategy.no_watermarks(), "rows")
    if job == "copy":
        rows.sink_to(sink(format, output))
    else:
        rows.discard()
    env.execute(job)


if __name__ == "__main__":
    f.main(run)
