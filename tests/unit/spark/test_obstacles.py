"""What is said about slots that have not started: advice only where it is known that cores are missing."""

import pytest

from penstock.spark.sessions.obstacles import Resources


@pytest.mark.parametrize(
    ("resources", "says", "advises"),
    [
        (Resources("yarn", executors=0, capacity=0), "no executor has registered with Spark yet", False),
        (
            Resources("yarn", executors=1, wanted_executors=2, capacity=2),
            "Spark can run 2 tasks at once on 1 executor; 2 executors (spark.executor.instances) were asked for",
            False,
        ),
        (Resources("spark://a:7077", executors=2, capacity=3), "on 2 executors, and the job needs 4", True),
        (Resources("local[2]", executors=0, capacity=2), "Name a master with more threads, such as local[4]", False),
        (
            Resources("spark://a:7077", executors=2, capacity=6, busy=3),
            "Spark can run 6 tasks at once, and other jobs of this Spark application use 3 of them",
            True,
        ),
        (
            Resources("local[6]", executors=0, capacity=6),
            "The job waits for 3 Python processes to start",
            False,
        ),
        (Resources("local[6]", executors=0, capacity=6, busy=2), "3 Python processes to start", False),
        (Resources("sc://a:15002"), "Spark does not report how many tasks it can run at once", False),
    ],
)
def test_slots_wait_for_what_is_missing(resources: Resources, says: str, advises: bool) -> None:
    said = resources.obstacle(slots=4, started=1)
    assert says in said
    assert ("more cores" in said) == advises


def test_with_dynamic_allocation_executors_are_on_their_way_and_limits_are_named() -> None:
    limits = "spark.dynamicAllocation.maxExecutors=2"
    told = Resources("spark://host:7077", executors=0, capacity=0, is_dynamic=True, limits=limits).obstacle(3, 0)
    assert told.startswith(
        "Spark can run 0 tasks at once on 0 executors, and asks the cluster manager ('spark://host:7077')"
    )
    assert told.endswith("these limits have to suffice for 3 tasks at once: spark.dynamicAllocation.maxExecutors=2")
    enough = Resources("spark://host:7077", executors=3, capacity=3, is_dynamic=True, limits=limits).obstacle(3, 1)
    assert "which is enough" in enough
