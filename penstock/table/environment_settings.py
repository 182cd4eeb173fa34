"""EnvironmentSettings: whether queries run over streams or over what is there, and with which options."""

from __future__ import annotations

from penstock.base.arguments import check_arguments
from penstock.common.configuration import Configuration

__all__ = ["EnvironmentSettings"]

RUNTIME_MODE = "execution.runtime-mode"
CATALOG, DATABASE = "table.builtin-catalog-name", "table.builtin-database-name"


@check_arguments
class EnvironmentSettings:
    """How a table environment is set up.

    >>> EnvironmentSettings.in_batch_mode().is_streaming_mode()
    False
    """

    @check_arguments
    class Builder:
        """Collects settings."""

        def __init__(self) -> None:
            self._configuration = Configuration()

        def in_streaming_mode(self) -> EnvironmentSettings.Builder:
            return self._set(RUNTIME_MODE, "STREAMING")

        def in_batch_mode(self) -> EnvironmentSettings.Builder:
            return self._set(RUNTIME_MODE, "BATCH")

        def with_configuration(self, config: Configuration) -> EnvironmentSettings.Builder:
            """Options that the environment starts with; `execution.runtime-mode` among them decides on the mode."""
            self._configuration.add_all(config)
            return self

        def with_built_in_catalog_name(self, built_in_catalog_name: str) -> EnvironmentSettings.Builder:
            return self._set(CATALOG, built_in_catalog_name)

        def with_built_in_database_name(self, built_in_database_name: str) -> EnvironmentSettings.Builder:
            return self._set(DATABASE, built_in_database_name)

        def _set(self, key: str, value: str) -> EnvironmentSettings.Builder:
            self._configuration.set_string(key, value)
            return self

        def build(self) -> EnvironmentSettings:
            return EnvironmentSettings(Configuration(self._configuration))

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = configuration or Configuration()

    @staticmethod
    def new_instance() -> EnvironmentSettings.Builder:
        return EnvironmentSettings.Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        return EnvironmentSettings.new_instance().in_streaming_mode().build()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        return EnvironmentSettings.new_instance().in_batch_mode().build()

    def is_streaming_mode(self) -> bool:
        return self._configuration.get_string(RUNTIME_MODE, "STREAMING").upper() != "BATCH"

    def get_built_in_catalog_name(self) -> str:
        return self._configuration.get_string(CATALOG, "default_catalog")

    def get_built_in_database_name(self) -> str:
        return self._configuration.get_string(DATABASE, "default_database")

    def get_configuration(self) -> Configuration:
        return self._configuration
