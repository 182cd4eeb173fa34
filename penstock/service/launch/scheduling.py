"""Checks the settings of slots: adaptive parallelism, and timeouts that fit together."""

from __future__ import annotations

from penstock.errors import ConfigurationError
from penstock.graph.plan import Plan
from penstock.service.launch.durable_jobs import is_checkpointed
from penstock.service.launch.execution_settings import EnvironmentSettings, checkpoint_directory


def is_adaptive(settings: EnvironmentSettings, plan: Plan) -> bool:
    """Return True if the parallelism follows the available cores. A BATCH job does not need all its cores at once."""
    return not plan.batch and (settings.scheduler == "adaptive" or settings.scheduler_mode == "reactive")


def check_scheduling(settings: EnvironmentSettings, plan: Plan) -> None:
    """Raise ConfigurationError for settings that contradict each other. Nothing has started by then."""
    patience = settings.patience
    if patience.heartbeat_interval > patience.heartbeat_timeout:
        raise ConfigurationError(
            f"heartbeat.interval is {patience.heartbeat_interval} ms, and heartbeat.timeout is "
            f"{patience.heartbeat_timeout} ms: the timeout would expire between two signs of life of the driver. "
            "The interval must not be longer than the timeout"
        )
    if is_adaptive(settings, plan) and is_checkpointed(settings, plan) and checkpoint_directory(settings) is None:
        raise ConfigurationError(
            "with jobmanager.scheduler=adaptive or scheduler-mode=reactive the job goes on from its last checkpoint "
            "when its parallelism changes, and execution.checkpointing.dir is not set. Name a directory for checkpoints"
        )
