"""What unchanged PyFlink programs import and call beside the DataStream API itself."""

import importlib
import sys

import pytest

from penstock import compat
from penstock.common import Configuration, ExecutionConfig, Types
from penstock.datastream import EmbeddedRocksDBStateBackend, FileSystemCheckpointStorage
from penstock.datastream.functions import MapFunction, ReduceFunction, SourceFunction
from penstock.datastream.state import ValueStateDescriptor
from penstock.errors import ConfigurationError, ContextError, UnsupportedOperation
from penstock.java_gateway import get_gateway
from penstock.table import DataTypes
from penstock.table.types.stream_types import data_type, type_information
from penstock.util.java_utils import get_j_env_configuration, load_java_class

MODULES = [
    "common.config_options",
    "common.constants",
    "common.job_client",
    "common.job_execution_result",
    "common.job_id",
    "common.job_status",
    "datastream.async_retry_predicates",
    "datastream.externalized_checkpoint_retention",
    "datastream.timerservice",
    "java_gateway",
    "metrics.metricbase",
    "util.java_utils",
]


@pytest.fixture
def pyflink():
    compat.install()
    yield
    compat.uninstall()


@pytest.mark.parametrize("module", MODULES)
def test_modules_have_pyflinks_names(pyflink, module):
    found = importlib.import_module(f"pyflink.{module}")
    assert found is importlib.import_module(f"penstock.{module}")
    assert all(hasattr(found, name) for name in found.__all__)


def test_a_module_that_is_not_there_is_called_by_the_name_that_the_program_uses(pyflink):
    with pytest.raises(ModuleNotFoundError, match=r"no module of PyFlink's name 'pyflink\.table\.hive'"):
        importlib.import_module("pyflink.table.hive")
    with pytest.raises(ModuleNotFoundError, match=r"'pyflink\.nothing'"):
        importlib.import_module("pyflink.nothing.at_all")


def test_the_alias_comes_and_goes():
    assert not compat.is_installed()
    compat.install()
    compat.install()
    assert compat.is_installed()
    compat.uninstall()
    assert not compat.is_installed() and "pyflink" not in sys.modules


@pytest.mark.parametrize("kind", ["kinesis", "pulsar", "dynamic_kafka", "hybrid_source"])
def test_connectors_that_do_not_exist_say_so_when_they_are_used(kind):
    module = importlib.import_module(f"penstock.datastream.connectors.{kind}")
    for name in module.__all__:
        absent = getattr(module, name)
        with pytest.raises(UnsupportedOperation, match=f"{name} does not exist here: "):
            absent()
        with pytest.raises(UnsupportedOperation, match=rf"{name}\.builder does not exist here: "):
            absent.builder()
        assert isinstance(absent, type) and not hasattr(absent, "__len__")


def test_java_says_what_to_do_instead(env):
    with pytest.raises(UnsupportedOperation, match=r"gateway\.jvm does not exist here: .*in Python"):
        _ = get_gateway().jvm.java.lang.String
    with pytest.raises(UnsupportedOperation, match="load_java_class does not exist"):
        load_java_class("java.lang.String")
    with pytest.raises(UnsupportedOperation, match=r"Java environment\.getStreamGraph does not exist"):
        env._j_stream_execution_environment.getStreamGraph()
    assert "no Java gateway" in repr(get_gateway())


# --- configuration ---
def test_a_configuration_prints_as_in_pyflink():
    configuration = Configuration().set_string("k1", "v1").set_boolean("k2", True).set_integer("k3", 1)
    assert str(configuration) == "{k1=v1, k2=true, k3=1}"
    assert str(Configuration()) == "{}"


@pytest.mark.parametrize("wrapped", [True, False])
def test_the_configuration_behind_an_environment_is_live(env, wrapped):
    env.configure(Configuration().set_string("pipeline.name", "before").set_string("my.own", "7"))
    behind = get_j_env_configuration(env._j_stream_execution_environment)
    configuration = Configuration(j_configuration=behind) if wrapped else behind
    assert configuration.get_string("pipeline.name", "") == "before"
    assert configuration.get_integer("my.own", 0) == 7
    if wrapped:
        configuration.set_integer("parallelism.default", 3)
    else:
        configuration.setInteger("parallelism.default", 3)
        assert configuration.getInteger("parallelism.default", 0) == 3 and configuration.containsKey("my.own")
        with pytest.raises(AttributeError, match="no setNothing"):
            configuration.setNothing("a", 1)
    assert env.get_parallelism() == 3
    again = get_j_env_configuration(env._j_stream_execution_environment)
    assert again.get_integer("parallelism.default", 0) == 3
    with pytest.raises(ConfigurationError, match=r"parallelism\.default cannot be 'many'"):
        configuration.set_string("parallelism.default", "many")


def test_execution_configs_that_are_equal_have_the_same_hash(env):
    one, other = ExecutionConfig().set_parallelism(2), ExecutionConfig().set_parallelism(2)
    assert one == other and hash(one) == hash(other)
    assert isinstance(hash(env.get_config()), int)


def test_paths_have_flinks_form():
    assert FileSystemCheckpointStorage("file:///var/checkpoints/").get_checkpoint_path() == "file:///var/checkpoints"
    assert FileSystemCheckpointStorage("/").get_checkpoint_path() == "/"
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths("file:///var/db/", "/tmp/other")
    assert backend.get_db_storage_paths() == ["/var/db", "/tmp/other"]


def test_the_changelog_is_remembered(env):
    assert env.is_changelog_state_backend_enabled() is None
    assert env.enable_changelog_state_backend(True).is_changelog_state_backend_enabled() is True
    assert env.enable_changelog_state_backend(False).is_changelog_state_backend_enabled() is False


# --- functions ---
class Reads(MapFunction):
    """Reads a cached file when it is asked to, with the context that `open` received."""

    def map(self, value):
        with open(self.get_runtime_context().get_distributed_cache().get_file(value)) as file:
            return file.read()


def test_cached_files_reach_the_functions(run, tmp_path):
    (tmp_path / "words.txt").write_text("to be")
    (tmp_path / "folder").mkdir()

    def build(env):
        env.register_cached_file(str(tmp_path / "words.txt"), "words")
        env.register_cached_file(f"file://{tmp_path / 'folder'}", "folder", executable=True)
        return env.from_collection(["words"]).map(Reads())

    assert run(build) == ["to be"]


def test_bad_cached_files(env, tmp_path):
    with pytest.raises(ConfigurationError, match="there is no file or folder"):
        env.register_cached_file(str(tmp_path / "nothing"), "n")
    env.register_cached_file(str(tmp_path), "folder")
    with pytest.raises(ConfigurationError, match="'folder' is registered already"):
        env.register_cached_file(str(tmp_path), "folder")
    env.from_collection(["other"]).map(Reads()).discard()
    with pytest.raises(ContextError, match="no file is cached under the name 'other'; registered names: folder"):
        env.execute()


class Latest(ReduceFunction):
    """Uses state through the context that it was given, without an open() of its own."""

    def reduce(self, value1, value2):
        state = self.get_runtime_context().get_state(ValueStateDescriptor("calls"))
        state.update((state.value() or 0) + 1)
        assert state.get_internal_state() is state
        return value2[0], state.value()


class Names(SourceFunction):
    def run(self, ctx):
        ctx.collect(self.get_runtime_context().get_task_name())

    def cancel(self):
        pass


def test_a_function_knows_its_runtime_context(run):
    records = [("a", 0), ("b", 0), ("a", 0)]
    assert run(lambda env: env.from_collection(records).key_by(0).reduce(Latest())) == [("a", 0), ("b", 0), ("a", 1)]
    assert run(lambda env: env.add_source(Names(), "Namer")) == ["Namer"]
    with pytest.raises(ContextError, match="Reads has no runtime context before it is opened"):
        Reads().get_runtime_context()


# --- plans and results ---
def test_the_nodes_of_a_plan_have_flinks_names(env):
    import json

    from penstock.common import Encoder
    from penstock.datastream.connectors.file_system import FileSink

    pairs = env.from_collection([("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()])).name("kafka source")
    pairs.project(1).print()
    pairs.sink_to(FileSink.for_row_format("/tmp/x", Encoder.simple_string_encoder()).build())
    pairs.sink_to(FileSink.for_row_format("/tmp/y", Encoder.simple_string_encoder()).build()).name("files")
    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert [node["type"] for node in nodes] == [
        "Source: kafka source",
        "Projection",
        "Sink: Print to Std. Out",
        "Sink: Writer",
        "files: Writer",
    ]


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize(
    "build",
    [
        lambda s: s,
        lambda s: s.key_by(lambda value: value % 3),
        lambda s: s.rebalance(),
        lambda s: s.union(s.filter(lambda value: False)),
        lambda s: s.map(lambda value: value).set_parallelism(1),
    ],
)
def test_results_keep_the_order_of_a_stream(run, build, parallelism):
    numbers = list(range(20))
    assert run(lambda env: build(env.from_collection(numbers)), parallelism=parallelism, epoch_records=7) == numbers


def test_results_of_parallel_subtasks_keep_the_order_of_each(run):
    results = run(lambda env: env.from_collection(range(40)).map(lambda value: value), parallelism=2)
    assert sorted(results) == list(range(40))
    assert [v for v in results if v % 2] == list(range(1, 40, 2)) and [v for v in results if not v % 2] == list(
        range(0, 40, 2)
    )


def test_data_types_become_the_types_of_streams():
    row = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.BIGINT()), ("b", DataTypes.ARRAY(DataTypes.STRING()))])
    assert type_information(row) == Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.OBJECT_ARRAY(Types.STRING())])
    number_map = DataTypes.MAP(DataTypes.INT(), DataTypes.TINYINT())
    assert type_information(number_map) == Types.MAP(Types.INT(), Types.BYTE())
    assert type_information(DataTypes.DECIMAL(4, 2)).notation == "DECIMAL(4, 2)"
    assert data_type(type_information(row)) == row
