"""Runs SQL statements one after the other in its own environment, and shows their results."""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.common.configuration import Configuration
from penstock.common.types import Row
from penstock.service.cli.exit_codes import CommandFailed
from penstock.service.cli.sql.script_statements import HELP, LEAVE, statements
from penstock.service.options.sql_client_options import MODE, MODES, ROWS, TIME_COST, VERBOSE
from penstock.table.display.row_printing import show, show_all, show_bounded, text_of
from penstock.table.environment_settings import EnvironmentSettings
from penstock.table.environments.stream_environment import StreamTableEnvironment
from penstock.table.result_kind import ResultKind
from penstock.table.types.data_types import DataType

if TYPE_CHECKING:
    from penstock.table.api.results import TableResult

WAIT = "table.dml-sync"


class SqlClient:
    """A client that runs statements in an environment and shows their results."""

    def __init__(self, options: Mapping[str, str], batch: bool = False) -> None:
        configuration = Configuration()
        for name, value in options.items():
            configuration.set_string(name, str(value))
        builder = EnvironmentSettings.new_instance().with_configuration(configuration)
        settings = (builder.in_batch_mode() if batch else builder).build()
        self.environment = StreamTableEnvironment.create(environment_settings=settings)

    # --- scripts ---
    def run_script(self, text: str) -> None:
        """Run all statements, and wait for the INSERTs. Stop at the first statement that fails."""
        jobs = []
        for statement in statements(text):
            if statement.lower() in LEAVE:
                break
            try:
                result = self.run(statement)
            except KeyboardInterrupt:
                raise
            except Exception as error:
                raise CommandFailed(f"{_shorten(statement)}\n{self.describe(error)}") from error
            if result is not None:
                jobs.append((statement, result))
        for statement, result in jobs:
            try:
                result.wait()
            except Exception as error:
                raise CommandFailed(f"{_shorten(statement)}\n{self.describe(error)}") from error

    def describe(self, error: BaseException) -> str:
        """Return an error's text, with its traceback if the option sql-client.verbose is set."""
        if self._option(VERBOSE, "false") == "true":
            return "".join(traceback.format_exception(error)).rstrip()
        return f"{type(error).__name__}: {error}"

    def run(self, statement: str) -> TableResult | None:
        """Run one statement and show its result. Return the result of an INSERT that is still running, else None."""
        if statement.lower() == "help":
            _say(HELP)
            return None
        if statement.lower() == "clear":
            sys.stdout.write("\x1b[2J\x1b[H" if sys.stdout.isatty() else "")
            return None
        began = time.monotonic()
        result = self.environment.execute_sql(statement)
        if result.is_insert():
            return self._report_insert(result)
        self.show(result, began)
        return None

    def _report_insert(self, result: TableResult) -> TableResult | None:
        job = result.get_job_client()
        assert job is not None
        if self._option(WAIT, "false") == "true":
            result.wait()
            _say("[INFO] Complete execution of the SQL update statement.")
            return None
        _say("[INFO] SQL update statement has been successfully submitted to the cluster:")
        _say(f"Job ID: {job.get_job_id()}")
        return result

    # --- results ---
    def show(self, result: TableResult, began: float) -> None:
        """Show a result in the form that the option sql-client.execution.result-mode names."""
        if result.get_result_kind() == ResultKind.SUCCESS:
            _say("[INFO] Execute statement succeeded.")
            return
        names = result.get_resolved_schema().get_column_names()
        types = result.get_resolved_schema().types()
        mode = self._option(MODE, "tableau").lower()
        if mode not in MODES:
            raise CommandFailed(f"{MODE} is one of {', '.join(MODES)}, not {mode}")
        with result.collect() as rows:
            if mode == "json":
                _as_json(names, types, rows, result.zone)
            elif mode == "table" and result._streaming and sys.stdout.isatty():
                from penstock.table.display.terminal_table import show_live

                show_live(names, types, rows, int(self._option(ROWS, "1000")), result.zone)
            else:
                count = self._print(result, rows, streaming=result._streaming and mode != "table")
                if count and self._option(TIME_COST, "false") == "true":
                    _say(f"({time.monotonic() - began:.2f} s)")

    @staticmethod
    def _print(result: TableResult, rows: Iterable[Row], streaming: bool) -> int:
        """Show rows as a table, and return their number."""
        names, types = result.get_resolved_schema().get_column_names(), result.get_resolved_schema().types()
        if result.get_job_client() is None or result.is_insert():
            return show_all(names, types, rows)
        if not result._streaming:
            return show_bounded(names, types, rows, widest=result.widest, zone=result.zone)
        return show(names, types, rows, streaming, widest=result.widest, zone=result.zone, total=streaming)

    def _option(self, name: str, default: str) -> str:
        return self.environment.get_config().get(name, default)

    # --- for completion ---
    def words(self) -> list[str]:
        """Return the names of all tables, functions and columns."""
        environment = self.environment
        tables = environment.list_tables()
        columns = set()
        for table in tables:
            try:
                columns.update(environment.from_path(f"`{table}`").get_schema().get_field_names())
            except Exception:  # a table whose connector is not installed has no columns to offer
                continue
        return sorted({*tables, *columns, *environment.list_functions()})


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _as_json(names: list[str], types: list[DataType], rows: Iterable[Any], zone: str) -> None:
    """Print a line of JSON for each change, with its kind and its row."""
    for row in rows:
        values = {name: _plain(value, kind, zone) for name, value, kind in zip(names, row, types, strict=True)}
        _say(json.dumps({"op": str(row.get_row_kind()), **values}, ensure_ascii=False))


def _plain(value: Any, kind: DataType, zone: str) -> Any:
    return value if isinstance(value, (int, float, str, bool, type(None))) else text_of(value, kind, zone)


def _shorten(statement: str) -> str:
    first = statement.strip().splitlines()[0]
    return first if len(first) <= 100 else first[:97] + "..."
