"""The choice of Spark SQL for the BATCH queries of an environment."""

from __future__ import annotations

from penstock.service.launch import submission
from penstock.table.options.job_options import ENGINE
from penstock.table.rules.implementation.query_settings import Options


def reason_against(config: Options, collects: bool) -> str | None:
    """Return the reason why queries cannot run on Spark SQL, or None if they can.

    `collects`: whether the rows of the query come to this process. Such a query is a job without a plan of operators.
    """
    if config.get(ENGINE, "spark") == "penstock":
        return f"'{ENGINE}' is 'penstock'"
    given = submission.defaults()
    if given.cluster is not submission.spark_cluster or given.plans_only:
        return "the job does not run on Spark"
    if collects and given.before_start is not None:
        return "a server keeps a record of the job, and only a job of operators has one"
    return None
