"""A job that has everything on S3: checkpoints, a savepoint, and the files it writes.

    python -m tests.spark.s3_job FOLDER MASTER

Numbers are counted by key and the counts written into files, exactly once. Started again after its driver died, it goes
on where it was. When there is a file FOLDER/handover it is stopped with a savepoint, from which a second job goes on;
that one ends when there is a file FOLDER/enough. The bucket's URL is in the environment.
"""

import os
import sys
import time
from pathlib import Path

from penstock.common import Encoder, Types
from penstock.datastream.connectors.file_system import BucketAssigner, FileSink
from tests.spark.kill_job import KEYS, CheckTransitions, Count, Numbers, environment

FIRST, SECOND = "53" * 16, "54" * 16
"""The ids of the two jobs."""


def start(folder, master, job_id, **options):
    bucket = os.environ["BUCKET"]
    env = environment(
        folder,
        master,
        **{
            "execution.checkpointing.dir": f"{bucket}/checkpoints",
            "execution.checkpointing.savepoint-dir": f"{bucket}/savepoints",
            "execution.checkpointing.data-inline-threshold": "0 b",
            "pipeline.job-id": job_id,
            **options,
        },
    )
    numbers = env.add_source(Numbers(folder), type_info=Types.LONG()).uid("numbers")
    counts = numbers.key_by(lambda number: number % KEYS).process(Count()).uid("count")
    checked = counts.key_by(lambda pair: pair[0]).process(CheckTransitions()).uid("check")
    base = BucketAssigner.base_path_bucket_assigner()
    sink = FileSink.for_row_format(f"{bucket}/results", Encoder.simple_string_encoder()).with_bucket_assigner(base)
    checked.sink_to(sink.build()).uid("files")
    return env.execute_async(job_id)


def main(folder, master):
    first = start(folder, master, FIRST)
    while not Path(folder, "handover").exists():
        time.sleep(0.05)
    savepoint = first.stop_with_savepoint(False).result()
    Path(folder, "savepoint").write_text(savepoint)
    second = start(folder, master, SECOND, **{"execution.state-recovery.path": savepoint})
    second.get_job_execution_result().result()
    Path(folder, "ended").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
