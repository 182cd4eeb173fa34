"""Options of Flink that become settings of Spark, of processes, and of a program's dependencies."""

import os
from pathlib import Path

import pytest

from penstock.common import Configuration
from penstock.datastream import StreamExecutionEnvironment
from penstock.engine.snapshots.local_copies import LocalCopies
from penstock.errors import ConfigurationError
from penstock.service.launch.durable_jobs import checkpoint_settings
from penstock.service.launch.execution_settings import EnvironmentSettings
from penstock.service.launch.python_dependencies import PythonDependencies
from penstock.service.launch.submission import plan_of
from penstock.service.options.translated_options import OPTIONS

EXECUTOR, DRIVER = "spark.executor.extraJavaOptions", "spark.driver.extraJavaOptions"


def settings_of(options: dict[str, str]) -> EnvironmentSettings:
    settings = EnvironmentSettings()
    settings.read(Configuration.from_dict(options))
    return settings


@pytest.mark.parametrize(
    ("options", "spark"),
    [
        ({"taskmanager.numberOfTaskSlots": "4"}, {"spark.executor.cores": "4"}),
        (
            {"taskmanager.memory.process.size": "4g"},
            {"spark.executor.memory": "1024m", "spark.executor.memoryOverhead": "3072m"},
        ),
        (
            {"taskmanager.heap.size": "1024m"},
            {"spark.executor.memory": "512m", "spark.executor.memoryOverhead": "512m"},
        ),
        (
            {"taskmanager.memory.task.heap.size": "2g", "taskmanager.memory.process.size": "4g"},
            {"spark.executor.memory": "2048m", "spark.executor.memoryOverhead": "3072m"},
        ),
        ({"jobmanager.memory.heap.size": "1 gb"}, {"spark.driver.memory": "1024m"}),
        (
            {"env.java.opts.all": "-Da=1", "env.java.opts.taskmanager": "-Db=2", "env.java.default-opts.all": "-Dc=3"},
            {EXECUTOR: "-Dc=3 -Da=1 -Db=2", DRIVER: "-Dc=3 -Da=1"},
        ),
        ({"env.java.opts": "-Da=1"}, {EXECUTOR: "-Da=1", DRIVER: "-Da=1"}),
        ({"io.tmp.dirs": "/a:/b"}, {"spark.local.dir": "/a,/b", "spark.executorEnv.TMPDIR": "/a"}),
        ({"yarn.ship-files": "a.py;b.py"}, {"spark.yarn.dist.files": "a.py,b.py"}),
        ({"resourcemanager.taskmanager-timeout": "30 s"}, {"spark.dynamicAllocation.executorIdleTimeout": "30000ms"}),
        ({"kubernetes.taskmanager.labels": "team:a,tier:b"},
         {"spark.kubernetes.executor.label.team": "a", "spark.kubernetes.executor.label.tier": "b"}),
        ({"flink.hadoop.dfs.replication": "2"}, {"spark.hadoop.dfs.replication": "2"}),
    ],
)  # fmt: skip
def test_options_become_settings_of_spark(options: dict[str, str], spark: dict[str, str]) -> None:
    assert settings_of(options).spark_settings() == spark


def test_settings_of_spark_that_are_given_take_precedence() -> None:
    given = {"spark.executor.memory": "7g", EXECUTOR: "-Dmine=1"}
    found = settings_of({"taskmanager.memory.process.size": "4g", "env.java.opts": "-Da=1", **given}).spark_settings()
    assert {name: found[name] for name in given} == given
    assert found["spark.executor.memoryOverhead"] == "3072m"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("taskmanager.numberOfTaskSlots", "0"),
        ("taskmanager.memory.process.size", "much"),
        ("kubernetes.taskmanager.labels", "team"),
        ("resourcemanager.taskmanager-timeout", "soon"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_that_names_the_option(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"option {name} cannot be '{value}'"):
        settings_of({name: value})


def test_no_option_accepts_an_empty_text() -> None:
    for option in OPTIONS:
        with pytest.raises(ConfigurationError, match=option.name):
            settings_of({option.name: " "})


def test_folders_of_java_and_hadoop_are_variables_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_HOME", "HADOOP_CONF_DIR"):
        monkeypatch.setenv(name, "before")
    settings_of({"env.java.home": "/opt/java", "fs.hdfs.hadoopconf": "/etc/hadoop"}).prepare_process()
    assert (os.environ["JAVA_HOME"], os.environ["HADOOP_CONF_DIR"]) == ("/opt/java", "/etc/hadoop")


def test_local_copies_go_to_the_folders_that_are_named(tmp_path: Path) -> None:
    options = {
        "execution.checkpointing.interval": "1 s",
        "state.backend.local-recovery": "true",
        "taskmanager.state.local.root-dirs": f"{tmp_path}/a,{tmp_path}/b",
        "state.backend.async": "false",
    }
    environment = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(options))
    environment.from_collection([1]).print()
    found = checkpoint_settings(environment.settings, plan_of(environment, None))
    assert found is not None and found.local_copies and not found.asynchronous
    for slot, folder in enumerate("aba"):
        copies = LocalCopies("job", slot, found.local_folders)
        list(copies.copying("memory://x", [b"1"]))
        assert len(list((tmp_path / folder / "penstock-copies-job").glob(f"slot-{slot}-*"))) == 1


def test_dependencies_that_options_name_are_added_once(tmp_path: Path) -> None:
    for name in ("a.py", "b.zip", "needs.txt"):
        (tmp_path / name).touch()
    found = settings_of(
        {
            "python.files": f"{tmp_path}/a.py",
            "python.archives": f"{tmp_path}/b.zip#data",
            "python.requirements": f"{tmp_path}/needs.txt",
        }
    )
    dependencies = PythonDependencies()
    for _ in range(2):
        dependencies.add_configured(found.translation)
    assert dependencies.files == [f"{tmp_path}/a.py"]
    assert dependencies.archives == [(f"{tmp_path}/b.zip", "data")]
    assert dependencies.requirements == (f"{tmp_path}/needs.txt", None)


def test_a_program_is_warned_once_of_options_without_effect(
    capsys: pytest.CaptureFixture[str], fresh_warnings: None
) -> None:
    configuration = Configuration.from_dict(
        {"akka.ask.timeout": "1 s", "paralelism.default": "2", "pipeline.name": "x"}
    )
    for _ in range(2):
        StreamExecutionEnvironment.get_execution_environment(configuration)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0].startswith("warning: option 'akka.ask.timeout' has no effect: there is no Akka")
    assert said[1] == "warning: there is no option 'paralelism.default'; did you mean 'parallelism.default'?"


def test_input_is_gathered_as_long_as_an_epoch_may_read_without_a_buffer_timeout() -> None:
    options = {"execution.buffer-timeout.interval": "5 ms", "penstock.epoch.max-time": "700 ms"}
    assert settings_of(options).epochs().interval_millis == 5
    assert settings_of({**options, "execution.buffer-timeout.enabled": "false"}).epochs().interval_millis == 700
