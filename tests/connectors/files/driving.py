"""Drives the writers and committers of a FileSink as the runtime does, with checkpoints and crashes at will."""

import pickle
from types import SimpleNamespace
from typing import Any

import fsspec

from penstock.datastream.connectors.base import ReaderContext, WriterContext
from penstock.datastream.functions import SinkFunction
from penstock.errors import UndecodableRecord
from tests.connectors.files import object_store  # noqa: F401 - so that its URLs are known

KINDS = ("local", "memory", "objects")


def base_of(kind, folder):
    """The URL of a fresh place on a file system of some kind; the folder's name makes it fresh."""
    return {"local": f"{folder}/out", "memory": f"memory://{folder.name}", "objects": f"objects://host/{folder.name}"}[
        kind
    ]


class Times(SinkFunction.Context):
    def __init__(self, job, timestamp=None):
        self._job = job
        self._timestamp = timestamp

    def current_processing_time(self):
        return self._job.now

    def current_watermark(self):
        return 0

    def timestamp(self):
        return self._timestamp


class Subtask(WriterContext):
    """The WriterContext of one subtask."""

    def __init__(self, job, index, checkpoint):
        self._job, self._index, self._checkpoint = job, index, checkpoint

    @property
    def runtime(self) -> Any:
        job = self._job
        return SimpleNamespace(
            get_job_id=lambda: job.job_id,
            get_index_of_this_subtask=lambda: self._index,
            get_number_of_parallel_subtasks=lambda: job.parallelism,
            get_attempt_number=lambda: job.attempt,
        )

    @property
    def uid(self):
        return "sink"

    @property
    def input_type(self):
        return None

    @property
    def now(self):
        return self._job.now

    @property
    def owner(self):
        return self._job.owner

    @property
    def is_restored(self):
        return self._checkpoint is not None

    @property
    def has_rivals(self):
        return self._job.has_rivals

    @property
    def all_restored(self):
        return [item for writer, _ in self._checkpoint or () for item in writer]

    @property
    def all_committables(self):
        return [item for _, pending in self._checkpoint or () for number in pending for item in pending[number]]


class SinkJob:
    """A job that is nothing but a sink. A checkpoint is, for every subtask, the writer's items and what is pending."""

    def __init__(self, sink, parallelism=1, job_id="job", checkpoint=None, owner=0):
        self.sink = sink
        self.owner = owner
        self.job_id = job_id
        self.now = 1_000_000
        self.number = 0
        self.attempt = 0
        self.has_rivals = False
        self.parallelism = parallelism
        self._start(checkpoint)

    def _start(self, checkpoint):
        checkpoint = None if checkpoint is None else pickle.loads(checkpoint)
        self.writers, self.pending = [], [{} for _ in range(self.parallelism)]
        committer = self.sink.create_committer()
        for _, pending in checkpoint or ():
            for number in sorted(pending):
                committer.commit(pending[number])
        items = [item for writer, _ in checkpoint or () for item in writer]
        for index in range(self.parallelism):
            context = Subtask(self, index, checkpoint)
            self.writers.append(self.sink.create_writer(context, items[index :: self.parallelism]))

    def write(self, *values, subtask=0, timestamps=None):
        assert self.writers[subtask % self.parallelism].write_all(list(values), timestamps, Times(self))

    def pass_time(self, millis):
        self.now += millis
        for writer in self.writers:
            writer.end_epoch(self.now)

    def checkpoint(self, end=False, savepoint=False):
        """Take a checkpoint. It is not complete before `complete` says so."""
        self.number += 1
        taken = []
        for writer, pending in zip(self.writers, self.pending, strict=True):
            writer.flush(end)
            writer.is_savepoint = savepoint
            pending[self.number] = writer.prepare_commit()
            taken.append((writer.snapshot_state(self.number), dict(pending)))
        return pickle.dumps(taken)

    def complete(self, number=None):
        number = self.number if number is None else number
        committer = self.sink.create_committer()
        for pending in self.pending:
            for covered in [other for other in sorted(pending) if other <= number]:
                committer.commit(pending.pop(covered))

    def checkpoint_and_complete(self, end=False):
        taken = self.checkpoint(end)
        self.complete()
        return taken

    def crash(self, checkpoint, parallelism=None):
        """Start over from a checkpoint; nobody has closed anything."""
        self.attempt += 1
        self.parallelism = parallelism or self.parallelism
        self._start(checkpoint)


def shown(base):
    """The files that readers see, by their path below the base."""
    fs, root = fsspec.core.url_to_fs(base)
    return {path: fs.cat_file(f"{root}/{path}") for path in found(base) if not is_hidden(path)}


def hidden(base):
    return sorted(path for path in found(base) if is_hidden(path))


def everything(base):
    fs, root = fsspec.core.url_to_fs(base)
    return {path: fs.cat_file(f"{root}/{path}") for path in found(base)}


def found(base):
    """Paths below the base. A hidden file may get another name before it can be opened."""
    fs, root = fsspec.core.url_to_fs(base)
    fs.invalidate_cache()
    return [path.removeprefix(f"{root}/") for path in fs.find(root)] if fs.exists(root) else []


def is_hidden(path):
    return path.rpartition("/")[2].startswith(".")


def lines(base):
    return sorted(line for data in shown(base).values() for line in data.decode().splitlines())


class Rejecting(ReaderContext):
    """A ReaderContext that keeps what is rejected, or fails."""

    takes_checkpoints = True

    def __init__(self, fails=True):
        self.fails = fails
        self.rejected = []

    @property
    def runtime(self) -> Any:
        raise AssertionError("no reader of files asks who it is")

    def decode(self, decode, messages, position):
        raise AssertionError("records of files are decoded by their format")

    def reject(self, message, error, position):
        if self.fails:
            raise UndecodableRecord(f"the record at {position} cannot be decoded: {error}")
        self.rejected.append((message, position))
