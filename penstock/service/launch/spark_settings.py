"""Options of Penstock among Spark's settings, such as `spark-submit --conf spark.penstock.parallelism.default=4`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from penstock.service.options.known_options import is_known, new_warnings

PREFIX = "spark.penstock."
_OWN = "penstock."
MASTER = "spark.master"


def options_in_spark() -> dict[str, str]:
    """Return the options of Penstock in the session of this process, or in the settings given to `spark-submit`."""
    return options_among(settings_of_spark())


def spark_submit_master() -> str | None:
    """Return the master given to `spark-submit`, or None if `spark-submit` did not start this process."""
    return settings_of_spark().get(MASTER) if _is_submitted() else None


def options_among(settings: Mapping[str, str]) -> dict[str, str]:
    """Return options by their own names. Options whose names begin with `penstock.` need no second `penstock.`."""
    found = {}
    for name, value in settings.items():
        if name.startswith(PREFIX):
            option = name.removeprefix(PREFIX)
            if not is_known(option) and is_known(_OWN + option):
                option = _OWN + option
            found[option] = value
    for warning in new_warnings(dict.fromkeys(found), PREFIX):
        sys.stderr.write(f"warning: {warning}\n")
    return found


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def settings_of_spark() -> Mapping[str, str]:
    """Return every setting of Spark in this process. Without Spark there are none, and nothing is imported."""
    if not _is_submitted() and "pyspark" not in sys.modules:
        return {}
    from penstock.spark.sessions.session import current_settings

    return current_settings()
