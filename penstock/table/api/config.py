"""TableConfig: the options of a table environment."""

from __future__ import annotations

import datetime
from typing import overload

from penstock.base.arguments import check_arguments
from penstock.common.configuration import Configuration, parse_duration
from penstock.errors import ValidationException
from penstock.service.launch.effective_options import effective_options
from penstock.service.launch.execution_settings import EnvironmentSettings
from penstock.table.environment_settings import RUNTIME_MODE
from penstock.table.options.job_options import check
from penstock.table.sql_dialect import SqlDialect

__all__ = ["TableConfig"]

ZONE, TTL, DIALECT = "table.local-time-zone", "table.exec.state.ttl", "table.sql-dialect"


@check_arguments
class TableConfig:
    """Options by name. They apply to the queries of one environment.

    An option that is not set here has the value that it has in the stream environment below.

    >>> config = TableConfig()
    >>> config.set("table.exec.state.ttl", "1 h").get("table.exec.state.ttl", "")
    '1 h'
    """

    def __init__(self, configuration: Configuration | None = None, below: EnvironmentSettings | None = None) -> None:
        self._configuration = configuration or Configuration()
        self._initial = self._configuration.to_dict()
        self._below = below

    @staticmethod
    def get_default() -> TableConfig:
        """Return a TableConfig without any option."""
        return TableConfig()

    @overload
    def get(self, key: str, default_value: str) -> str: ...

    @overload
    def get(self, key: str, default_value: None) -> str | None: ...

    def get(self, key: str, default_value: str | None) -> str | None:
        """Return the value of an option, or `default_value` if it is not set here or in the stream environment."""
        held = self._configuration
        if self._below is not None and not held.contains_key(key):
            held = effective_options(self._below)
        return held.get_string(key, "") or default_value

    def set(self, key: str, value: str | int | float | bool) -> TableConfig:
        """Set an option, and return this TableConfig.

        A value that the option does not allow is refused.
        """
        text = str(value).lower() if isinstance(value, bool) else str(value)
        check(key, text)
        if key == RUNTIME_MODE:
            _check_mode(text)
        self._configuration.set_string(key, text)
        return self

    def reset(self, key: str) -> TableConfig:
        """Return an option to its initial value, if it has one, and return this TableConfig."""
        self._configuration.remove_config(key)
        if key in self._initial:
            self._configuration.set_string(key, self._initial[key])
        return self

    def to_map(self) -> dict[str, str]:
        """Return the options that are set here."""
        return self._configuration.to_dict()

    def effective_map(self) -> dict[str, str]:
        """Return the options in force. Options that are set here replace those of the stream environment."""
        below = {} if self._below is None else effective_options(self._below).to_dict()
        return {**below, **self.to_map()}

    def is_batch(self) -> bool:
        """Return True if queries run in BATCH mode."""
        return _check_mode(self.get(RUNTIME_MODE, "STREAMING")) == "BATCH"

    def add_configuration(self, configuration: Configuration) -> None:
        """Add options."""
        self._configuration.add_all(configuration)

    def get_configuration(self) -> Configuration:
        """Return the options that are set here. Changes to them apply."""
        return self._configuration

    def get_local_timezone(self) -> str:
        """Return the time zone of the session, `UTC` by default."""
        return self.get(ZONE, "UTC")

    def set_local_timezone(self, timezone_id: str) -> None:
        """Set the time zone of the session, such as `Europe/Berlin`."""
        self.set(ZONE, timezone_id)

    def set_idle_state_retention(self, duration: datetime.timedelta) -> None:
        """Set the time after which state without access is removed; `table.exec.state.ttl`."""
        self.set(TTL, f"{duration // datetime.timedelta(milliseconds=1)} ms")

    def get_idle_state_retention(self) -> datetime.timedelta:
        """Return the time after which state without access is removed; 0 if it is kept."""
        return datetime.timedelta(milliseconds=parse_duration(self.get(TTL, "0 ms")))

    def get_sql_dialect(self) -> SqlDialect:
        """Return the dialect of SQL."""
        return SqlDialect[self.get(DIALECT, "DEFAULT").upper()]

    def set_sql_dialect(self, sql_dialect: SqlDialect) -> None:
        """Set the dialect of SQL."""
        self.set(DIALECT, sql_dialect.name)

    def set_max_generated_code_length(self, max_generated_code_length: int) -> None:
        """Keep the number for PyFlink's programs. It has no effect, because no code is generated here."""
        self.set("table.generated-code.max-length", max_generated_code_length)

    def get_max_generated_code_length(self) -> int:
        """Return the number that was set; it has no effect."""
        return int(self.get("table.generated-code.max-length", "4000"))

    def set_python_executable(self, python_exec: str) -> None:
        """Set the Python interpreter, `python.executable`."""
        self.set("python.executable", python_exec)

    def get_python_executable(self) -> str:
        """Return the Python interpreter that was set; an empty text if there is none."""
        return self.get("python.executable", "")


def _check_mode(text: str) -> str:
    mode = text.strip().upper()
    if mode not in {"STREAMING", "BATCH"}:
        raise ValidationException(f"tables: '{RUNTIME_MODE}' is streaming or batch, not '{text}'")
    return mode
