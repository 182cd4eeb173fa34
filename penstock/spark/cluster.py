"""Slots on Spark: one Python worker process per slot, the same one for every stage of every epoch.

Three things make a slot stick, all through PySpark and the public Java RDD API:

1. A process of its own. Spark keeps a pool of Python workers per distinct environment of a Python function. Each slot
   is a one-partition PythonRDD whose environment names the job and the slot, so it always meets the same pool of one.
2. An executor of its own. `anchor` is a tiny cached RDD with one partition per slot; zipped with the exchanged data it
   gives each partition a narrow dependency on a cached block, and the scheduler prefers the executor that holds it.
   RDD.zip wants equal counts, so every task sends exactly one element to every slot.
3. One Spark stage per stage. The slots' RDDs are unioned; an exchange is a shuffle of (slot, bytes) pairs.
"""

from __future__ import annotations

import pickle
from typing import Any

import cloudpickle
from py4j.protocol import Py4JError
from pyspark import SparkContext, StorageLevel
from pyspark.errors import PySparkException
from pyspark.serializers import CloudPickleSerializer, NoOpSerializer

from penstock.errors import SlotLost
from penstock.runtime.protocol import Command, Deployment, Report
from penstock.spark import worker


class SparkCluster:
    """The slots of one job on a SparkContext."""

    def __init__(self, context: SparkContext, job_id: str, job_name: str, slots: int, stages: int) -> None:
        self._context = context
        self._jvm: Any = context._jvm
        self._job_id = job_id
        self._job_name = job_name
        self._slots = slots
        self._stages = stages
        self._functions = [self._function(slot) for slot in range(slots)]
        self._only = [self._jvm.PythonUtils.toSeq([i == slot for i in range(slots)]) for slot in range(slots)]
        self._partitioner = self._jvm.PythonPartitioner(slots, 0)
        self._anchor = self._new_anchor()
        self._released = False

    # --- the cluster protocol ---
    def deploy(self, deployment: Deployment) -> list[Report]:
        return self._on_slots(worker.DEPLOY + cloudpickle.dumps(deployment), stages=1, large=True)

    def run(self, command: Command) -> list[Report]:
        return self._on_slots(worker.COMMAND + pickle.dumps(command), self._stages)

    def release(self) -> list[Report]:
        if self._released:
            return []
        self._released = True
        try:
            return self._on_slots(worker.RELEASE, stages=1)
        finally:
            self._anchor.unpersist(False)

    def interrupt(self) -> None:
        """Spark kills the tasks, and with them the workers that do not return."""
        self._context.cancelJobGroup(self._job_id)

    # --- one Spark job ---
    def _on_slots(self, element: bytes, stages: int, large: bool = False) -> list[Report]:
        self._context.setJobGroup(self._job_id, self._job_name, interruptOnCancel=True)
        try:
            rdd = self._in_slots(self._anchored(self._start(element, large)))
            for _ in range(stages - 1):
                rdd = self._in_slots(self._anchored(self._exchange(rdd)))
            reports = [pickle.loads(report) for report in rdd.collect()]
        except (Py4JError, PySparkException) as error:
            raise SlotLost(_reason(str(error))) from None
        if len(reports) != self._slots:
            raise SlotLost(f"{len(reports)} of {self._slots} slots answered")
        return reports

    def _start(self, element: bytes, large: bool) -> Any:
        """The same element for every slot, in as many copies as an anchor's partition has elements.

        A large one goes to each slot once, followed by copies of its tag alone; that takes more calls to the JVM.
        """
        copies = self._jvm.java.util.Collections.nCopies
        if not large:
            elements = copies(self._slots * self._slots, element)
        else:
            elements = self._jvm.java.util.ArrayList()
            one, others = copies(1, element), copies(self._slots - 1, element[:1])
            for _ in range(self._slots):
                elements.addAll(one)
                elements.addAll(others)
        return self._context._jsc.parallelize(elements, self._slots)

    def _exchange(self, rdd: Any) -> Any:
        pairs = self._jvm.PairwiseRDD(rdd.rdd()).asJavaPairRDD()
        return self._jvm.PythonRDD.valueOfPair(pairs.partitionBy(self._partitioner))

    def _anchored(self, rdd: Any) -> Any:
        return self._anchor.zip(rdd).values()

    def _in_slots(self, rdd: Any) -> Any:
        """Partition p of `rdd` through the worker process of slot p."""
        jvm, inner = self._jvm, rdd.rdd()
        pruned = jvm.org.apache.spark.rdd.PartitionPruningRDD
        parts = [
            jvm.PythonRDD(pruned.create(inner, self._only[slot]), self._functions[slot], False, False).asJavaRDD()
            for slot in range(self._slots)
        ]
        if len(parts) == 1:
            return parts[0]
        others = self._context._gateway.new_array(jvm.org.apache.spark.api.java.JavaRDD, len(parts))
        for index, part in enumerate(parts):
            others[index] = part
        return self._context._jsc.union(others)

    # --- made once ---
    def _function(self, slot: int) -> Any:
        """The Python function of a slot. Its environment is what gives the slot a worker pool of its own."""
        command = (worker.serve, None, NoOpSerializer(), NoOpSerializer())
        environment = dict(self._context.environment)
        environment[worker.SLOT_VARIABLE] = f"{self._job_id}/{slot}"
        environment[worker.SLOT_VARIABLE + "_STAGES"] = str(self._stages)
        return self._jvm.SimplePythonFunction(
            bytearray(CloudPickleSerializer().dumps(command)),
            environment,
            self._context._python_includes,
            self._context.pythonExec,
            self._context.pythonVer,
            [],
            self._context._javaAccumulator,
        )

    def _new_anchor(self) -> Any:
        context, size = self._context, self._slots * self._slots
        anchor = context._jsc.parallelize(self._jvm.java.util.Collections.nCopies(size, 0), self._slots)
        anchor.persist(context._getJavaStorageLevel(StorageLevel.MEMORY_ONLY))
        anchor.count()
        return anchor


def _reason(text: str) -> str:
    """What Spark says in one line, without its stack of frames."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "ExecutorLostFailure" in text:
        return "an executor was lost, and its slots with it"
    if "crashed" in text or "exited unexpectedly" in text or "EOFException" in text:
        return "a slot's process died, and its state with it"
    if "cancelled" in text:
        return "the Spark job was cancelled"
    telling = [line for line in lines if "Error" in line or "Exception" in line]
    return (telling or lines or ["Spark gave no reason"])[-1][:400]
