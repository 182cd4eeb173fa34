"""The options of an environment that are in force: given ones, and those that its methods have set."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from penstock.common.configuration import Configuration
from penstock.service.launch.execution_settings import EnvironmentSettings

_READERS: dict[str, Callable[[EnvironmentSettings], str | None]] = {
    "parallelism.default": lambda s: _if_set(s.config.get_parallelism()),
    "pipeline.max-parallelism": lambda s: _if_set(s.config.get_max_parallelism()),
    "pipeline.auto-watermark-interval": lambda s: f"{s.config.get_auto_watermark_interval()} ms",
    "pipeline.operator-chaining.enabled": lambda s: str(s.chaining).lower(),
    "pipeline.object-reuse": lambda s: str(s.config.is_object_reuse_enabled()).lower(),
    "execution.runtime-mode": lambda s: s.mode.name,
    "execution.buffer-timeout.interval": lambda s: "-1" if s.buffer_timeout < 0 else f"{s.buffer_timeout} ms",
    "execution.checkpointing.interval": lambda s: (
        f"{s.checkpoints.get_checkpoint_interval()} ms" if s.checkpoints.is_checkpointing_enabled() else None
    ),
    "execution.checkpointing.mode": lambda s: s.checkpoints.get_checkpointing_mode().name,
}
"""Functions that return the texts of settings that a program sets with methods, or None for unset ones."""


def _if_set(number: int) -> str | None:
    return str(number) if number > 0 else None


def effective_options(settings: EnvironmentSettings) -> Configuration:
    """Return the given options, replaced by the settings that methods have made since then.

    A setting that still has its default is left out, unless it was given.
    """
    found = Configuration(settings.given)
    for name, read in _READERS.items():
        value = read(settings)
        if value is not None and (found.contains_key(name) or value != _defaults()[name]):
            found.set_string(name, value)
    return found


@cache
def _defaults() -> dict[str, str | None]:
    settings = EnvironmentSettings()
    return {name: read(settings) for name, read in _READERS.items()}
