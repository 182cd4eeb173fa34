"""The SQL prompt: multi-line statements with highlighting, completion and a history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.base.libraries import optional_library
from penstock.service.cli.output import errors
from penstock.service.cli.sql.script_statements import LEAVE, is_complete, statements
from penstock.service.cli.sql.sql_client import SqlClient

HISTORY = Path("~/.penstock_sql_history")
KEYWORDS = tuple(
    """
    SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT INSERT INTO VALUES CREATE TABLE VIEW FUNCTION DATABASE DROP
    ALTER SHOW TABLES DESCRIBE EXPLAIN SET RESET USE WITH JOIN LEFT RIGHT FULL INNER CROSS ON AS AND OR NOT IN
    EXISTS BETWEEN LIKE IS NULL CASE WHEN THEN ELSE END CAST INTERVAL SECOND MINUTE HOUR DAY TUMBLE HOP CUMULATE
    SESSION DESCRIPTOR WATERMARK FOR PRIMARY KEY ENFORCED PARTITION OVER ROWS RANGE PRECEDING CURRENT ROW DISTINCT
    UNION ALL INTERSECT EXCEPT MATCH_RECOGNIZE
    """.split()  # noqa: SIM905 - a list of words reads better so
)


class Prompt:
    """Reads and runs statements until the user leaves."""

    def __init__(self, client: SqlClient) -> None:
        self._client = client
        self._jobs: list[Any] = []

    def run(self) -> None:
        """Read and run statements, and show their results. An error does not end the prompt."""
        session = self._session()
        print("Penstock SQL. HELP; shows how it works, QUIT; leaves.")
        while True:
            try:
                text = session.prompt("SQL> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            for statement in statements(text):
                if statement.lower() in LEAVE:
                    return
                self._run(statement)

    def _run(self, statement: str) -> None:
        try:
            result = self._client.run(statement)
            if result is not None:
                self._jobs.append(result)
        except KeyboardInterrupt:
            errors().print("[yellow]cancelled[/yellow]")
        except Exception as error:
            errors().print(self._client.describe(error), style="red", markup=False, highlight=False, soft_wrap=True)

    def _session(self) -> Any:
        toolkit = optional_library("prompt_toolkit", "the SQL prompt", "table")
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

        keys = KeyBindings()

        @keys.add("enter")
        def _(event: Any) -> None:
            """End the input if the statement is complete, and begin a new line otherwise."""
            buffer = event.current_buffer
            if is_complete(buffer.text):
                buffer.validate_and_handle()
            else:
                buffer.insert_text("\n")

        return toolkit.PromptSession(
            multiline=True,
            key_bindings=keys,
            lexer=PygmentsLexer(SqlLexer),
            completer=WordCompleter(lambda: [*KEYWORDS, *self._client.words()], ignore_case=True),
            complete_while_typing=False,
            history=FileHistory(str(HISTORY.expanduser())),
        )
