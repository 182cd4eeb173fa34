"""Makes the checkpoints, restarts and start of a job from the settings of its environment."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache

from penstock.api.settings.checkpoint_config import ExternalizedCheckpointRetention
from penstock.api.settings.checkpoint_storage import JobManagerCheckpointStorage
from penstock.base.storage import Storage
from penstock.engine.checkpoint.checkpoint_storage_actions import Archive
from penstock.engine.checkpoint.coordinator import CheckpointRules, Coordinator
from penstock.engine.checkpoint.metadata import Metadata
from penstock.engine.checkpoint.ownership import NoOwnership, Ownership, last_start
from penstock.engine.checkpoint.recovery import fit_plan, is_continued
from penstock.engine.checkpoint.rules import folder_of, is_finished, line, missing
from penstock.engine.checkpoint.store import CheckpointStore, FolderStore, MemoryStore, read_snapshot
from penstock.engine.job.durability import Durability
from penstock.engine.job.restarts import restarts_of
from penstock.engine.messages.commands_and_reports import CheckpointSettings
from penstock.errors import ConfigurationError, NoSuchSnapshot, StorageError
from penstock.graph.plan import Plan
from penstock.service.launch.execution_settings import (
    EnvironmentSettings,
    checkpoint_directory,
    checkpoint_storage,
    incremental_checkpoints,
    inline_threshold,
    state_backend,
)
from penstock.service.options.combined_options import Recovery

_WHOLLY_INLINE = 1 << 62
log = logging.getLogger("penstock.job")


@dataclass
class _Start:
    """The snapshot that a job starts from, if there is one."""

    snapshot: Metadata | None = None
    continued: bool = False
    earlier: tuple[Metadata, ...] = ()
    """Complete checkpoints of the same job. They are deleted when the job has taken a new one."""
    claimed: str | None = None


def is_checkpointed(settings: EnvironmentSettings, plan: Plan) -> bool:
    """Return True if the job takes checkpoints. A BATCH job takes none, because it restarts from the beginning."""
    return settings.checkpoints.is_checkpointing_enabled() and not plan.batch


def has_ended(settings: EnvironmentSettings) -> bool:
    """Return True if the job to recover has already finished, so that there is nothing to do."""
    if settings.recovery is Recovery.NONE or settings.restore_path is not None:
        return False
    return is_finished(last_start(_own_folder(settings).url()))


def fit_to_start(settings: EnvironmentSettings, plan: Plan, job_id: str) -> None:
    """Give the plan the max parallelism of the snapshot that the job starts from.

    Raise an error if the plan cannot start from that snapshot.
    """
    _start(settings, plan, job_id)


def take_ownership(settings: EnvironmentSettings, plan: Plan, job_id: str) -> NoOwnership:
    """Take the ownership of the job, and return it. From then on, other drivers can only take over the job."""
    directory = checkpoint_directory(settings)
    if directory is None or (settings.job_id is None and not is_checkpointed(settings, plan)):
        return NoOwnership()
    limit = settings.patience.heartbeat_timeout
    owner = Ownership(FolderStore(directory, job_id).url(), plan.job_name, limit, settings.job_id is not None)
    if not settings.single_driver:
        _check_exclusive(directory, plan.job_name)
    with give_back_on_failure(owner):
        owner.take(settings.takeover)
    return owner


def _check_exclusive(directory: str, job: str) -> None:
    """Raise if two drivers could create the same file in the checkpoint directory at the same moment."""
    # A storage that cannot be tested fails again, with a better error, when the driver takes the job.
    with suppress(StorageError):
        if _is_exclusive(directory):
            return
        raise ConfigurationError(
            f"the storage in execution.checkpointing.dir of job '{job}', '{Storage(directory).url()}', lets two "
            "drivers create the same file at the same moment, so that two drivers of the job could overwrite each "
            "other's checkpoints. Set execution.checkpointing.dir to a storage that refuses one of them, such as S3, "
            "HDFS or a disk that all drivers share. If the system that starts the drivers makes sure that only one "
            "runs the job at any time, set execution.single-driver to true (see docs/storage.md)"
        )


@cache
def _is_exclusive(directory: str) -> bool:
    """Return True if only one of two drivers can create a file. Each directory is tested once in this process.

    A local disk and the driver's memory need no test: they always refuse one of two creators.
    """
    storage = Storage(directory)
    return storage.local or storage.in_memory or storage.is_exclusive()


@contextmanager
def give_back_on_failure(owner: NoOwnership) -> Iterator[None]:
    """Give the job back if the block fails. The next driver then need not find out whether another one runs the job."""
    try:
        yield
    except BaseException as error:
        try:
            if isinstance(error, Exception):
                with suppress(StorageError):
                    owner.end(finished=False)
        finally:
            owner.let_go()
        raise


def durability(
    settings: EnvironmentSettings, plan: Plan, job_id: str, collecting: set[str], owner: NoOwnership
) -> Durability:
    """Return the checkpoints, the restarts and the start of a job."""
    checkpointed = is_checkpointed(settings, plan)
    directory = checkpoint_directory(settings)
    store: CheckpointStore = MemoryStore(job_id) if directory is None else FolderStore(directory, job_id)
    start = _start(settings, plan, job_id)
    coordinator = Coordinator(plan, job_id, _rules(settings, checkpointed), store.folder, _first_number(store))
    coordinator.adopt(start.earlier, start.claimed, everything=settings.recovery is not Recovery.NONE)
    retention = settings.checkpoints.get_externalized_checkpoint_retention()
    return Durability(
        coordinator,
        Archive(store, owner),
        restarts_of(settings.restart, checkpointed, job_id),
        start=start.snapshot,
        start_continued=start.continued,
        seals=checkpointed,
        marks_end=checkpointed and settings.job_id is not None,
        keep_when_cancelled=retention is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION,
        held=frozenset(collecting if checkpointed or (plan.batch and settings.restart is not None) else ()),
        owner=owner,
    )


def checkpoint_settings(settings: EnvironmentSettings, plan: Plan) -> CheckpointSettings | None:
    """Return the settings that slots need to take checkpoints, or None if the job takes none."""
    if not is_checkpointed(settings, plan):
        return None
    storage = checkpoint_storage(settings)
    in_driver = isinstance(storage, JobManagerCheckpointStorage)
    return CheckpointSettings(
        incremental=incremental_checkpoints(settings),
        compress=settings.config.is_use_snapshot_compression(),
        inline_below=_WHOLLY_INLINE if in_driver else inline_threshold(settings),
        largest_inline=storage.get_max_state_size() if isinstance(storage, JobManagerCheckpointStorage) else None,
        asynchronous=settings.asynchronous_snapshots and state_backend(settings).asynchronous_snapshots,
        local_copies=settings.checkpoints.is_local_recovery_enabled(),
        local_folders=settings.translation.local_folders,
    )


def _rules(settings: EnvironmentSettings, checkpointed: bool) -> CheckpointRules:
    config = settings.checkpoints
    return CheckpointRules(
        interval=config.get_checkpoint_interval() if checkpointed else None,
        timeout=config.get_checkpoint_timeout(),
        min_pause=config.get_min_pause_between_checkpoints(),
        max_concurrent=config.get_max_concurrent_checkpoints(),
        tolerable_failures=config.get_tolerable_checkpoint_failure_number(),
        retained=config.get_max_retained_checkpoints(),
    )


def _start(settings: EnvironmentSettings, plan: Plan, job_id: str) -> _Start:
    """Return the start of the job: its own newest checkpoint to recover, else the given snapshot, else nothing."""
    if settings.recovery is not Recovery.NONE:
        earlier = _recoverable(_own_folder(settings), job_id, settings.recovery is Recovery.OLDER)
        if earlier:
            newest = earlier[-1]
            fit_plan(plan, newest, f"checkpoint {newest.number} of job {job_id}", settings.allow_non_restored)
            return _Start(newest, is_continued(plan, job_id, newest), tuple(earlier))
    path = settings.restore_path
    if path is None:
        return _Start()
    snapshot = read_snapshot(path)
    kind = "savepoint" if snapshot.savepoint else "checkpoint"
    fit_plan(plan, snapshot, f"the {kind} at '{path}'", settings.allow_non_restored)
    return _Start(snapshot, claimed=path if settings.claim else None)


def _recoverable(folder: FolderStore, job_id: str, accepts_older: bool) -> list[Metadata]:
    """Return the checkpoints from which an unfinished job can continue, oldest first.

    Raise NoSuchSnapshot if the newest one is gone, unless older ones are accepted.
    """
    counting, gone = _line(folder)
    while gone is not None:
        # A driver that still runs may have replaced the checkpoint between two reads.
        before = gone
        counting, gone = _line(folder)
        if gone == before:
            _report_missing(folder, job_id, gone[1], counting, accepts_older)
            break
    return counting


def _line(folder: FolderStore) -> tuple[list[Metadata], tuple[int, int] | None]:
    """Return the valid checkpoints, and the newest published one if it is missing."""
    last = last_start(folder.url())
    if is_finished(last):
        return [], None
    counting = line(folder.complete(), last)
    return counting, missing(counting, last)


def _report_missing(
    folder: FolderStore, job_id: str, number: int, counting: list[Metadata], accepts_older: bool
) -> None:
    left = f"{folder_of(counting[-1].number)} is the newest remaining one" if counting else "no other is left"
    where = folder.folder(number)
    said = f"checkpoint {number} of job {job_id} was published and is now missing from '{where}'; {left}"
    if not accepts_older:
        raise NoSuchSnapshot(
            f"{said}. Records since then would be processed a second time. Restore the checkpoint's files, or "
            "accept this with execution.recover=older"
        )
    log.warning("%s, and the job continues from there (execution.recover=older)", said)


def _own_folder(settings: EnvironmentSettings) -> FolderStore:
    directory = checkpoint_directory(settings)
    if directory is None or settings.job_id is None:
        missing = "execution.checkpointing.dir" if directory is None else "pipeline.job-id"
        raise ConfigurationError(
            f"execution.recover=latest looks for checkpoints of an earlier run, and {missing} is not set: both runs "
            "need the same checkpoint directory and the same job id"
        )
    return FolderStore(directory, settings.job_id)


def _first_number(store: CheckpointStore) -> int:
    return store.next_number() if isinstance(store, FolderStore) else 1
