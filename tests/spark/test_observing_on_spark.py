"""A job on Spark that is watched: by reporters, in its log and through profiles of its slots."""

import logging
import os
import signal
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from penstock.common import Configuration
from penstock.datastream import MapFunction, StreamExecutionEnvironment
from penstock.datastream.execution_mode import RuntimeExecutionMode
from penstock.engine.observe.profiling import WAITING, ProfileOrder
from penstock.errors import JobFailed, SlotLost
from penstock.spark.sessions.mbeans import interface_method, objects
from tests.services.service import free_port
from tests.waiting import SPARK_SECONDS, until

PAGE, BEANS = free_port(), free_port()
log = logging.getLogger("watched.functions")


class Talk(MapFunction):
    """Logs what it sees, and works a little."""

    def open(self, context):
        log.warning("opened")

    def map(self, value):
        log.debug("saw %d", value)
        spend_time()
        return value


def spend_time():
    sum(range(20_000))


class Fail(MapFunction):
    """Logs a last line before it fails, or before its process is killed."""

    def __init__(self, how):
        self._how = how

    def map(self, value):
        log.info("the last line")
        if self._how == "raise":
            raise ValueError("no more")
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def job():
    settings = {
        "metrics.reporter.prom.factory.class": "prometheus",
        "metrics.reporter.prom.port": str(PAGE),
        "metrics.reporter.prom.host": "127.0.0.1",
        "metrics.reporter.jmx.factory.class": "org.apache.flink.metrics.jmx.JMXReporterFactory",
        "metrics.reporter.jmx.port": str(BEANS),
        "metrics.reporter.jmx.interval": "100 ms",
        "metrics.reporter.jmx.filter.includes": "*:uptime,numRecordsIn",
    }
    env = StreamExecutionEnvironment.create_local_environment(2)
    env.configure(Configuration.from_dict(settings))
    env.generate(rate=300).set_parallelism(1).key_by(lambda number: number % 4).map(Talk()).uid("talk").discard()
    started = env.execute_async("watched")
    yield started
    started.cancel().result()


@pytest.fixture
def lines():
    """What handlers of the driver get from slots: their records."""
    found = []

    class Keep(logging.Handler):
        def emit(self, record):
            found.append(record)

    keep = Keep()
    log.addHandler(keep)
    yield found
    log.removeHandler(keep)


def test_functions_log_and_levels_change_while_the_job_runs(job, lines):
    handle = job._job
    until(lambda: sum(slot.finished is False for slot in handle.record().slots) == 2, patience=SPARK_SECONDS)
    assert not [one for one in lines if one.levelno < logging.INFO]
    handle.set_log_levels({"watched.functions": "DEBUG"})
    assert handle.log_levels()["watched.functions"] == "DEBUG"
    until(lambda: {one.origin.subtask for one in lines if one.levelno == logging.DEBUG} == {0, 1})
    one = next(one for one in lines if one.levelno == logging.DEBUG)
    assert (one.origin.job_name, one.origin.uid, one.origin.parallelism) == ("watched", "talk", 2)
    assert one.text.startswith("saw ")
    assert one.process not in (0, os.getpid())
    handle.set_log_levels({"watched.functions": ""})
    assert "watched.functions" not in handle.log_levels()


def test_a_profile_shows_what_functions_do(job):
    def found():
        seen = job._job.profile(ProfileOrder(samples=20, millis=10))
        talking = [one for one in seen if one.uid == "talk" and any("spend_time" in name for name in one.frames)]
        idle = [one for one in seen if one.uid == WAITING]
        return talking and {one.subtask for one in idle} == {0, 1}

    until(found, patience=SPARK_SECONDS, every=0.1)


@pytest.mark.parametrize("how", ["raise", "kill"])
def test_the_last_lines_before_a_failure_arrive(how, lines):
    env = StreamExecutionEnvironment.create_local_environment(1)
    env.configure(Configuration.from_dict({"logging.level.watched.functions": "INFO"}))
    env.from_collection([1]).map(Fail(how)).name("Last words").discard()
    with pytest.raises(JobFailed if how == "raise" else SlotLost):
        env.execute("failing")
    assert [(one.text, one.origin.operator) for one in lines] == [("the last line", "Last words")]


def test_functions_of_batch_jobs_log_too(lines):
    env = StreamExecutionEnvironment.create_local_environment(2)
    env.configure(Configuration.from_dict({"logging.level.watched.functions": "DEBUG"}))
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    env.from_collection([1, 2, 3]).map(Talk()).name("Talk").discard()
    env.execute("batch")
    assert sorted(one.text for one in lines if one.levelno == logging.DEBUG) == ["saw 1", "saw 2", "saw 3"]
    assert {one.origin.operator for one in lines if one.levelno == logging.DEBUG} == {"Talk"}
    logging.getLogger("watched.functions").setLevel(logging.NOTSET)


def records_in() -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{PAGE}/metrics", timeout=30) as answer:
        families = {one.name: one for one in text_string_to_metric_families(answer.read().decode())}
    found = families.get("flink_taskmanager_job_task_numRecordsIn")
    return 0 if found is None else sum(one.value for one in found.samples)


def test_prometheus_sees_the_job_grow(job):
    def some() -> float:
        try:
            return records_in()
        except OSError:
            return 0

    first = until(some, patience=SPARK_SECONDS)
    until(lambda: records_in() > first)


class Beans:
    """A JMX client, connected as one from another process is."""

    def __init__(self, port: int) -> None:
        context = SparkSession.getActiveSession().sparkContext
        self.java, self._gateway = context._jvm, context._gateway
        url = self.java.javax.management.remote.JMXServiceURL(f"service:jmx:rmi:///jndi/rmi://localhost:{port}/jmxrmi")
        connector = self.java.javax.management.remote.JMXConnectorFactory.connect(url)
        self._connection = self._call("javax.management.remote.JMXConnector", connector, "getMBeanServerConnection")

    def _call(self, interface, target, method, **arguments):
        types = [kind.replace("_", ".") for kind in arguments]
        called = interface_method(self._gateway, interface, method, types)
        return called.invoke(target, objects(self._gateway, list(arguments.values())))

    def ask(self, method, **arguments):
        return self._call("javax.management.MBeanServerConnection", self._connection, method, **arguments)

    def named(self, pattern):
        name = self.java.javax.management.ObjectName(pattern)
        return list(self.ask("queryNames", javax_management_ObjectName=name, javax_management_QueryExp=None))

    def value(self, name, attribute):
        return self.ask("getAttribute", javax_management_ObjectName=name, java_lang_String=attribute)


def test_the_drivers_jvm_has_beans(job):
    def connected():
        try:
            return Beans(BEANS)
        except Exception:
            return None

    beans = until(connected, patience=SPARK_SECONDS)
    (uptime,) = until(lambda: beans.named("org.apache.flink.jobmanager.job.uptime:*"))
    assert uptime.getKeyProperty("job_name") == "watched"
    until(lambda: beans.value(uptime, "Value") > 0)
    counters = until(lambda: beans.named("org.apache.flink.taskmanager.job.task.numRecordsIn:*"))
    until(lambda: sum(beans.value(name, "Count") for name in counters) > 0)
