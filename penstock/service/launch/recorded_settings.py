"""The settings of an environment, in the form that the record of its job shows."""

from __future__ import annotations

from penstock.common.secrets import mask_settings
from penstock.engine.job.job_record import CheckpointingRecord, Settings
from penstock.service.launch.execution_settings import EnvironmentSettings, checkpoint_storage, state_backend


def settings_record(settings: EnvironmentSettings) -> Settings:
    """Return the settings for the record of the job, with secrets masked."""
    config = settings.config
    return Settings(
        parallelism=settings.parallelism(),
        max_parallelism=settings.max_parallelism(),
        restart_strategy=settings.restart.get_description() if settings.restart is not None else "as checkpoints need",
        object_reuse=config.is_object_reuse_enabled(),
        parameters=mask_settings({str(name): str(value) for name, value in config.get_global_job_parameters().items()}),
        configuration=mask_settings(settings.given.to_dict()),
        checkpoints=_checkpointing(settings),
        master=settings.spark_master(),
    )


def _checkpointing(settings: EnvironmentSettings) -> CheckpointingRecord | None:
    checkpoints = settings.checkpoints
    if not checkpoints.is_checkpointing_enabled():
        return None
    return CheckpointingRecord(
        mode=checkpoints.get_checkpointing_mode().name,
        interval=checkpoints.get_checkpoint_interval(),
        timeout=checkpoints.get_checkpoint_timeout(),
        min_pause=checkpoints.get_min_pause_between_checkpoints(),
        max_concurrent=checkpoints.get_max_concurrent_checkpoints(),
        tolerable_failures=checkpoints.get_tolerable_checkpoint_failure_number(),
        retention=checkpoints.get_externalized_checkpoint_retention().name,
        state_backend=type(state_backend(settings)).__name__,
        storage=type(checkpoint_storage(settings)).__name__,
        unaligned=checkpoints.is_unaligned_checkpoints_enabled(),
        retained=checkpoints.get_max_retained_checkpoints(),
    )
