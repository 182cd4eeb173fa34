"""A job on Spark that is watched: by reporters, in its log and through profiles of its slots."""

import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.spark.mbeans import interface_method, objects
from tests.services.service import free_port
from tests.waiting import SPARK_SECONDS, until

PAGE, BEANS = free_port(), free_port()


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
    env.generate(rate=300).set_parallelism(1).key_by(lambda number: number % 4).map(lambda x: x).discard()
    started = env.execute_async("watched")
    yield started
    started.cancel().result()


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
