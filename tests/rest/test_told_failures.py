"""A failure as REST tells it, from a job that has failed."""

import pytest

from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.job.job_view import FailureView
from penstock.errors import JobFailed
from penstock.service.rest.answers.exception_answers import stack_trace_of
from penstock.testing import in_process


def test_the_traceback_of_a_function_is_told_once() -> None:
    with in_process(), pytest.raises(JobFailed) as failed:
        environment = StreamExecutionEnvironment().set_parallelism(1)
        environment.from_collection([0]).map(lambda x: 1 / x).print()
        environment.execute()
    told = stack_trace_of(FailureView.of(failed.value, 1, 0))
    assert told.count("Traceback (most recent call last)") == 1
    assert told.startswith("JobFailed: ")


def test_a_traceback_that_the_message_does_not_hold_follows_it() -> None:
    failure = FailureView(1, 0, "JobFailed", "it failed", traceback="Traceback (most recent call last):\nValueError: x")
    assert stack_trace_of(failure) == "JobFailed: it failed\nTraceback (most recent call last):\nValueError: x"
