"""The settings for the connection to a database and for writing into it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from penstock.api.settings.values import at_least
from penstock.base.arguments import check_arguments

_PASSWORD = re.compile(r"(?<=://)([^/?#@:]*):[^/?#]*@|(?<=[?&;])(password|pwd)=[^&;]*", re.IGNORECASE)
_NAMED = re.compile(r"\w+")


@check_arguments
@dataclass(frozen=True)
class JdbcConnectionOptions:
    """The address of a database, and the user to connect as.

    The URL is `jdbc:postgresql://host:port/database`, `jdbc:sqlite:path`, or any URL that SQLAlchemy understands.
    """

    url: str
    driver_name: str | None = None
    """Kept for programs from Flink. The URL alone decides which driver is used."""
    user_name: str | None = None
    password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.url, str):
            raise TypeError(f"the URL of a database is text, not {self.url!r}")
        scheme = self.url.removeprefix("jdbc:").partition(":")[0]
        if not re.fullmatch(r"[a-z][a-z0-9]*(\+\w+)?", scheme) or ":" not in self.url.removeprefix("jdbc:"):
            raise ValueError(
                f"'{self.display_url}' is not the URL of a database; it should look like "
                "jdbc:postgresql://host:5432/database, jdbc:sqlite:path or a URL of SQLAlchemy"
            )
        if self.dialect == "sqlite" and (
            ":memory:" in self.url or self.url in ("sqlite:", "sqlite://", "jdbc:sqlite:")
        ):
            raise ValueError("a SQLite database in memory is visible to one connection only; use a database in a file")

    def get_db_url(self) -> str:
        """Return the URL of the database."""
        return self.url

    def get_driver_name(self) -> str | None:
        """Return the name of the driver, which has no effect; None if it is not set."""
        return self.driver_name

    def get_user_name(self) -> str | None:
        """Return the name of the user; None if it is not set."""
        return self.user_name

    def get_password(self) -> str | None:
        """Return the password; None if it is not set."""
        return self.password

    @property
    def dialect(self) -> str:
        """The kind of database: "postgresql", "sqlite", …"""
        name = re.split(r"[:+]", self.url.removeprefix("jdbc:"))[0]
        return "postgresql" if name == "postgres" else name

    @property
    def display_url(self) -> str:
        """The URL without a password."""
        return _PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[2] is None else f"{found[2]}=***", self.url)

    @check_arguments
    class JdbcConnectionOptionsBuilder:
        """Builds JdbcConnectionOptions."""

        def __init__(self) -> None:
            self._url: str | None = None
            self._driver_name: str | None = None
            self._user_name: str | None = None
            self._password: str | None = None

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the URL of the database."""
            self._url = url
            return self

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the name of the driver. It has no effect: the URL alone decides which driver is used."""
            self._driver_name = driver_name
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the name of the user to connect as."""
            self._user_name = user_name
            return self

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the password of the user."""
            self._password = password
            return self

        def build(self) -> JdbcConnectionOptions:
            """Return the options; raise ValueError if the URL is missing or is not that of a database."""
            if self._url is None:
                raise ValueError("JdbcConnectionOptions need a URL: with_url(...)")
            return JdbcConnectionOptions(self._url, self._driver_name, self._user_name, self._password)


@check_arguments
@dataclass(frozen=True)
class JdbcExecutionOptions:
    """The sizes of a sink's batches, and the number of its attempts."""

    batch_interval_ms: int = 0
    """Longest time, in milliseconds, that a record waits for others; 0 to wait for a full batch or a checkpoint."""
    batch_size: int = 5000
    """Number of records in a batch; 0 for as many as arrive until something else ends the batch."""
    max_retries: int = 3
    """Number of further attempts for a batch after the connection was lost."""

    def __post_init__(self) -> None:
        for name in ("batch_interval_ms", "batch_size", "max_retries"):
            at_least(name, getattr(self, name), 0)

    def get_batch_interval_ms(self) -> int:
        """Return the longest time, in milliseconds, that a record waits for others; 0 for no limit."""
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        """Return the number of records in a batch; 0 for no limit."""
        return self.batch_size

    def get_max_retries(self) -> int:
        """Return the number of further attempts for a batch after the connection was lost."""
        return self.max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """Return the options with their default values."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Return a builder with the default values."""
        return JdbcExecutionOptions.Builder()

    @check_arguments
    class Builder:
        """Builds JdbcExecutionOptions."""

        def __init__(self) -> None:
            self._options = JdbcExecutionOptions()

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """Set the number of records in a batch: 5000 by default, 0 for no limit."""
            self._options = replace(self._options, batch_size=size)
            return self

        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            """Set the longest time, in milliseconds, that a record waits for others.

            With 0, the default, records wait for a full batch or a checkpoint.
            """
            self._options = replace(self._options, batch_interval_ms=interval_ms)
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """Set the number of further attempts for a batch after the connection was lost: 3 by default."""
            self._options = replace(self._options, max_retries=max_retries)
            return self

        def build(self) -> JdbcExecutionOptions:
            """Return the options."""
            return self._options


@check_arguments
@dataclass(frozen=True)
class JdbcExactlyOnceOptions:
    """The record that an exactly-once sink keeps of its commits."""

    marker_table: str = "penstock_commits"
    """Name of the table, which the sink creates if it does not exist. Several sinks and jobs may share it."""
    max_commit_attempts: int = 6
    timeout_sec: int = 20
    """Time, in seconds, after which a new owner of the job makes PostgreSQL end a commit of a stopped process."""

    def __post_init__(self) -> None:
        if not all(map(_NAMED.fullmatch, self.marker_table.split("."))):
            raise ValueError(f"'{self.marker_table}' is not a plain name of a table, with or without a schema")
        at_least("max_commit_attempts", self.max_commit_attempts, 1)
        at_least("timeout_sec", self.timeout_sec, 1)

    @staticmethod
    def defaults() -> JdbcExactlyOnceOptions:
        """Return the options with their default values."""
        return JdbcExactlyOnceOptions()

    @staticmethod
    def builder() -> JdbcExactlyOnceOptions.Builder:
        """Return a builder with the default values."""
        return JdbcExactlyOnceOptions.Builder()

    @check_arguments
    class Builder:
        """Builds JdbcExactlyOnceOptions."""

        def __init__(self) -> None:
            self._options = JdbcExactlyOnceOptions()

        def with_marker_table(self, name: str) -> JdbcExactlyOnceOptions.Builder:
            """Set the name of the table in which commits are recorded: `penstock_commits` by default."""
            self._options = replace(self._options, marker_table=name)
            return self

        def with_max_commit_attempts(self, attempts: int) -> JdbcExactlyOnceOptions.Builder:
            """Set the largest number of attempts to commit while the connection fails: 6 by default."""
            self._options = replace(self._options, max_commit_attempts=attempts)
            return self

        def with_timeout_sec(self, seconds: int) -> JdbcExactlyOnceOptions.Builder:
            """Set the seconds after which a new owner of the job ends a commit of a stopped process: 20 by default."""
            self._options = replace(self._options, timeout_sec=seconds)
            return self

        def build(self) -> JdbcExactlyOnceOptions:
            """Return the options."""
            return self._options
