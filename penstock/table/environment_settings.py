"""EnvironmentSettings: whether queries run over streams or over what is there, and with which options."""

from __future__ import annotations

from penstock.common.configuration import Configuration

__all__ = ["EnvironmentSettings"]


class EnvironmentSettings:
    """How a table environment is set up.

    >>> EnvironmentSettings.in_batch_mode().is_streaming_mode()
    False
    """

    class Builder:
        """Collects settings."""

        def __init__(self) -> None:
            self._made = EnvironmentSettings()

        def in_streaming_mode(self) -> EnvironmentSettings.Builder:
            self._made._streaming = True
            return self

        def in_batch_mode(self) -> EnvironmentSettings.Builder:
            self._made._streaming = False
            return self

        def with_configuration(self, config: Configuration) -> EnvironmentSettings.Builder:
            """Options that the environment starts with; `execution.runtime-mode` among them decides on the mode."""
            self._made._configuration.add_all(config)
            mode = config.get_string("execution.runtime-mode", "")
            if mode:
                self._made._streaming = mode.upper() != "BATCH"
            return self

        def with_built_in_catalog_name(self, built_in_catalog_name: str) -> EnvironmentSettings.Builder:
            self._made._catalog = built_in_catalog_name
            return self

        def with_built_in_database_name(self, built_in_database_name: str) -> EnvironmentSettings.Builder:
            self._made._database = built_in_database_name
            return self

        def build(self) -> EnvironmentSettings:
            return self._made

    def __init__(self) -> None:
        self._streaming = True
        self._catalog = "default_catalog"
        self._database = "default_database"
        self._configuration = Configuration()

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
        return self._streaming

    def get_built_in_catalog_name(self) -> str:
        return self._catalog

    def get_built_in_database_name(self) -> str:
        return self._database

    def get_configuration(self) -> Configuration:
        return self._configuration
