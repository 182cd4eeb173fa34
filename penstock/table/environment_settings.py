"""EnvironmentSettings: the mode of a table environment, streaming or batch, and its options."""

from __future__ import annotations

from penstock.base.arguments import check_arguments
from penstock.common.configuration import Configuration

__all__ = ["EnvironmentSettings"]

RUNTIME_MODE = "execution.runtime-mode"
CATALOG, DATABASE = "table.builtin-catalog-name", "table.builtin-database-name"


@check_arguments
class EnvironmentSettings:
    """The settings of a table environment.

    >>> EnvironmentSettings.in_batch_mode().is_streaming_mode()
    False
    """

    @check_arguments
    class Builder:
        """A builder of settings."""

        def __init__(self) -> None:
            self._configuration = Configuration()

        def in_streaming_mode(self) -> EnvironmentSettings.Builder:
            """Run queries in streaming mode, and return this builder."""
            return self._set(RUNTIME_MODE, "STREAMING")

        def in_batch_mode(self) -> EnvironmentSettings.Builder:
            """Run queries in batch mode, and return this builder."""
            return self._set(RUNTIME_MODE, "BATCH")

        def with_configuration(self, config: Configuration) -> EnvironmentSettings.Builder:
            """Add options, and return this builder. The option `execution.runtime-mode` sets the mode."""
            self._configuration.add_all(config)
            return self

        def with_built_in_catalog_name(self, built_in_catalog_name: str) -> EnvironmentSettings.Builder:
            """Set the name of the first catalog, and return this builder."""
            return self._set(CATALOG, built_in_catalog_name)

        def with_built_in_database_name(self, built_in_database_name: str) -> EnvironmentSettings.Builder:
            """Set the name of the first catalog's database, and return this builder."""
            return self._set(DATABASE, built_in_database_name)

        def _set(self, key: str, value: str) -> EnvironmentSettings.Builder:
            self._configuration.set_string(key, value)
            return self

        def build(self) -> EnvironmentSettings:
            """Return the settings."""
            return EnvironmentSettings(Configuration(self._configuration))

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = configuration or Configuration()

    @staticmethod
    def new_instance() -> EnvironmentSettings.Builder:
        """Return a builder of settings."""
        return EnvironmentSettings.Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Return the default settings in streaming mode."""
        return EnvironmentSettings.new_instance().in_streaming_mode().build()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Return the default settings in batch mode."""
        return EnvironmentSettings.new_instance().in_batch_mode().build()

    def is_streaming_mode(self) -> bool:
        """Return True if the mode is streaming."""
        return self._configuration.get_string(RUNTIME_MODE, "STREAMING").upper() != "BATCH"

    def get_built_in_catalog_name(self) -> str:
        """Return the name of the first catalog, `default_catalog` by default."""
        return self._configuration.get_string(CATALOG, "default_catalog")

    def get_built_in_database_name(self) -> str:
        """Return the name of the first catalog's database, `default_database` by default."""
        return self._configuration.get_string(DATABASE, "default_database")

    def get_configuration(self) -> Configuration:
        """Return the options. Changes to them apply to these settings."""
        return self._configuration
