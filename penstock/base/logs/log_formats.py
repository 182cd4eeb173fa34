"""Formats of log lines: text, or JSON with one object per line."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable

from penstock.base.logs.log_lines import Origin, SlotRecord
from penstock.base.logs.log_options import JSON

TEXT_FORMAT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
FindOrigin = Callable[[], Origin | None]


class TextFormatter(logging.Formatter):
    """Formats lines for people. Lines of this process name the function's operator too."""

    def __init__(self, find: FindOrigin = lambda: None) -> None:
        super().__init__(TEXT_FORMAT)
        self._find = find

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is that of logging
        origin = None if isinstance(record, SlotRecord) else self._find()
        if origin is not None:
            record.message = f"[{origin}] {record.message}"
        return super().formatMessage(record)


class JsonFormatter(logging.Formatter):
    """Formats lines for programs, as JSON."""

    def __init__(self, find: FindOrigin = lambda: None) -> None:
        super().__init__()
        self._find = find

    def format(self, record: logging.LogRecord) -> str:
        from_slot = isinstance(record, SlotRecord)
        said: dict[str, object] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.text if isinstance(record, SlotRecord) else record.getMessage(),
            **_fields(record.origin if isinstance(record, SlotRecord) else self._find()),
            "place": f"{record.filename}:{record.lineno}",
        }
        error = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        if error:
            said["exception"] = error
        if from_slot:
            said["process"] = record.process
        return json.dumps(said, ensure_ascii=False)


def _fields(origin: Origin | None) -> dict[str, object]:
    if origin is None:
        return {}
    job = {"job_id": origin.job_id, "job_name": origin.job_name, "attempt": origin.attempt}
    return {**job, "operator": origin.operator, "operator_uid": origin.uid, "subtask": origin.subtask}


def formatter(kind: str, find: FindOrigin = lambda: None) -> logging.Formatter:
    """Return the formatter for a value of `logging.format`."""
    return JsonFormatter(find) if kind == JSON else TextFormatter(find)
