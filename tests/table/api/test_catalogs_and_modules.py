"""Catalogs with partitions, models and descriptors; modules; the columns of resolved schemas."""

import sys

import pytest

from penstock.errors import ValidationException
from penstock.table import DataTypes, EnvironmentSettings, Module, Schema, TableEnvironment, TableSchema
from penstock.table.catalogs.memory_catalog import (
    Catalog,
    CatalogBaseTable,
    CatalogDatabase,
    CatalogModel,
    CatalogPartition,
    CatalogPartitionSpec,
    Column,
    ComputedColumn,
    MetadataColumn,
    ObjectPath,
    PhysicalColumn,
    UniqueConstraint,
    WatermarkSpec,
)
from penstock.table.catalogs.plugins import offers
from penstock.table.expression.function_declarations import udf
from penstock.testing import in_process
from penstock.util.exceptions import (
    ModelAlreadyExistException,
    ModelNotExistException,
    PartitionAlreadyExistsException,
    PartitionNotExistException,
    PartitionSpecInvalidException,
    TableNotExistException,
    TableNotPartitionedException,
)

PARTED, PLAIN = ObjectPath("db", "parted"), ObjectPath("db", "plain")
ANN = CatalogPartitionSpec({"who": "ann", "day": "1"})


@pytest.fixture
def catalog():
    made = Catalog("default")
    made.create_database("db", CatalogDatabase.create_instance({"k": "v"}, "d"))
    columns = TableSchema(["n", "who", "day"], [DataTypes.INT(), DataTypes.STRING(), DataTypes.STRING()])
    made.create_table(PARTED, CatalogBaseTable.create_table(columns, ["who", "day"]))
    made.create_table(PLAIN, CatalogBaseTable.create_table(columns))
    return made


@pytest.fixture
def t_env():
    with in_process():
        yield TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


def rows(t_env, statement):
    with t_env.execute_sql(statement).collect() as found:
        return [tuple(row) for row in found]


def test_partitions_of_a_table(catalog):
    other = CatalogPartitionSpec({"day": "2", "who": "ann"})
    catalog.create_partition(PARTED, ANN, CatalogPartition.create_instance({"a": "b"}, "c"))
    catalog.create_partition(PARTED, other, CatalogPartition())
    assert catalog.list_partitions(PARTED) == [ANN, other]
    assert catalog.list_partitions(PARTED, CatalogPartitionSpec({"day": "2"})) == [other]
    found = catalog.get_partition(PARTED, CatalogPartitionSpec({"day": "1", "who": "ann"}))
    assert found.get_properties() == {"a": "b"}
    catalog.alter_partition(PARTED, ANN, CatalogPartition({"x": "y"}))
    assert catalog.get_partition(PARTED, ANN).properties == {"x": "y"}
    catalog.drop_partition(PARTED, ANN)
    catalog.drop_partition(PARTED, ANN, True)
    assert not catalog.partition_exists(PARTED, ANN) and catalog.partition_exists(PARTED, other)
    catalog.drop_table(PARTED)
    catalog.create_table(PARTED, CatalogBaseTable(Schema(), {}, ("who", "day")))
    assert catalog.list_partitions(PARTED) == []


def test_partitions_that_make_no_sense(catalog):
    catalog.create_partition(PARTED, ANN, CatalogPartition())
    with pytest.raises(PartitionAlreadyExistsException, match="has a partition"):
        catalog.create_partition(PARTED, ANN, CatalogPartition())
    catalog.create_partition(PARTED, ANN, CatalogPartition({"a": "b"}), True)
    assert catalog.get_partition(PARTED, ANN) == CatalogPartition()
    with pytest.raises(PartitionSpecInvalidException, match=r"every column.*who.*day"):
        catalog.create_partition(PARTED, CatalogPartitionSpec({"who": "ann"}), CatalogPartition())
    with pytest.raises(PartitionSpecInvalidException, match="not partitioned by n, but by who, day"):
        catalog.list_partitions(PARTED, CatalogPartitionSpec({"n": "1"}))
    with pytest.raises(TableNotPartitionedException, match="plain is not partitioned"):
        catalog.create_partition(PLAIN, ANN, CatalogPartition())
    with pytest.raises(PartitionNotExistException, match="no partition"):
        catalog.drop_partition(PARTED, CatalogPartitionSpec({"who": "bob", "day": "1"}))
    with pytest.raises(TableNotExistException):
        catalog.list_partitions(ObjectPath("db", "nothing"))


def test_models_are_kept(catalog):
    schema = Schema.new_builder().column("x", DataTypes.INT()).build()
    path, other = ObjectPath("db", "m"), ObjectPath("db", "o")
    catalog.create_model(path, CatalogModel.create_model(schema, schema, {"a": "b"}, "c"))
    with pytest.raises(ModelAlreadyExistException):
        catalog.create_model(path, CatalogModel(schema, schema))
    catalog.rename_model(path, "o")
    assert catalog.list_models("db") == ["o"] and catalog.get_model(other).get_options() == {"a": "b"}
    catalog.alter_model(other, CatalogModel(schema, schema))
    assert catalog.get_model(other).get_comment() is None
    catalog.drop_model(other)
    for wrong in (lambda: catalog.drop_model(other), lambda: catalog.rename_model(other, "m")):
        with pytest.raises(ModelNotExistException, match=r"no model db\.o"):
            wrong()


def test_a_database_does_not_change_with_the_object_that_described_it(catalog):
    described = CatalogDatabase.create_instance({"k1": "v1"}, "c")
    catalog.create_database("other", described)
    catalog.alter_database("other", CatalogDatabase.create_instance({"k2": "v2"}, "d"))
    assert described.get_properties() == {"k1": "v1"}
    assert catalog.get_database("other").get_properties() == {"k2": "v2"}


def test_catalogs_have_comments_and_options(t_env):
    t_env.execute_sql("CREATE CATALOG c COMMENT 'it''s' WITH ('type' = 'generic_in_memory', 'default-database' = 'd')")
    t_env.execute_sql("CREATE DATABASE c.kept")
    t_env.execute_sql("ALTER CATALOG c SET ('default-database' = 'e')")
    assert rows(t_env, "DESCRIBE CATALOG EXTENDED c") == [
        ("name", "c"),
        ("type", "generic_in_memory"),
        ("comment", "it's"),
        ("option:default-database", "e"),
    ]
    t_env.execute_sql("ALTER CATALOG c COMMENT ''")
    t_env.execute_sql("ALTER CATALOG c RESET ('default-database')")
    assert rows(t_env, "SHOW CREATE CATALOG c") == [
        ("CREATE CATALOG `c`\nWITH (\n  'type' = 'generic_in_memory'\n)\n",)
    ]
    assert ("kept",) in rows(t_env, "SHOW DATABASES IN c")
    with pytest.raises(ValidationException, match="does not support changing 'type'"):
        t_env.execute_sql("ALTER CATALOG c RESET ('type')")
    with pytest.raises(ValidationException, match=", not 'k'"):
        t_env.execute_sql("ALTER CATALOG c SET ('k' = 'v')")
    with pytest.raises(ValidationException, match=r"\[ c\.d \] format error"):
        t_env.execute_sql("SHOW DATABASES FROM c.d")


def test_functions_are_found_in_the_modules_that_are_used(t_env):
    mine = Module()
    t_env.load_module("mine", mine)
    assert t_env.list_modules() == ["core", "mine"]
    t_env.use_modules("mine")
    assert [(one.name(), one.used()) for one in t_env.list_full_modules()] == [("mine", True), ("core", False)]
    with pytest.raises(ValidationException, match="no function UPPER: the module core is not used"):
        t_env.execute_sql("SELECT UPPER('a')")
    t_env.execute_sql("USE MODULES core, mine")
    assert rows(t_env, "SELECT UPPER('a')") == [("A",)]
    assert rows(t_env, "SHOW FULL MODULES") == [("core", True), ("mine", True)]
    t_env.execute_sql("UNLOAD MODULE core")
    assert t_env.list_modules() == ["mine"]
    t_env.execute_sql("LOAD MODULE core")
    assert rows(t_env, "SHOW MODULES") == [("mine",), ("core",)]
    for wrong, words in [
        (lambda: t_env.load_module("core", Module.core()), "'core' already exists"),
        (lambda: t_env.unload_module("x"), "No module with name 'x' exists; loaded are: mine, core"),
        (lambda: t_env.use_modules("core", "core"), "'core' appears more than once"),
        (lambda: t_env.execute_sql("LOAD MODULE hive"), "the module that can be loaded is core"),
    ]:
        with pytest.raises(ValidationException, match=words):
            wrong()
    with pytest.raises(TypeError, match="must be a Module, not 'x'"):
        t_env.load_module("y", "x")


def test_the_columns_of_a_declared_table(t_env):
    t_env.execute_sql("""
        CREATE TABLE t (id INT NOT NULL, m BIGINT METADATA FROM 'offset' VIRTUAL, c AS id + 1, ts TIMESTAMP(3),
        WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, PRIMARY KEY (id) NOT ENFORCED)
        WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'x:1', 'format' = 'json')
    """)
    schema = t_env.from_path("t").get_resolved_schema()
    plain, offset, computed, moment = schema.get_columns()
    assert [type(one) for one in schema.get_columns()] == [
        PhysicalColumn,
        MetadataColumn,
        ComputedColumn,
        PhysicalColumn,
    ]
    assert plain.is_physical() and plain.is_persisted() and plain.explain_extras() is None
    assert offset.is_virtual() and not offset.is_persisted() and offset.get_metadata_key() == "offset"
    assert computed.as_summary_string().startswith("`c` INT NOT NULL AS ")
    assert schema.get_primary_key().get_columns() == ["id"]
    (mark,) = schema.get_watermark_specs()
    assert mark.get_rowtime_attribute() == moment.get_name() == "ts"
    assert str(schema).splitlines()[5].strip() == mark.as_summary_string() + ","
    assert schema.get_primary_key().as_summary_string() in str(schema)


def test_columns_and_constraints_by_themselves():
    column = Column.physical("a", DataTypes.INT())
    assert str(column) == "`a` INT" and column.rename("b").copy(DataTypes.BIGINT()).with_comment("c").comment == "c"
    assert str(Column.metadata("a", DataTypes.INT(), "k", True)) == "`a` INT METADATA FROM 'k' VIRTUAL"
    key = UniqueConstraint.primary_key("pk", ["a", "b"])
    assert str(key) == "CONSTRAINT `pk` PRIMARY KEY (`a`, `b`) NOT ENFORCED" and not key.is_enforced()
    assert WatermarkSpec.of("ts", "ts").as_summary_string() == "WATERMARK FOR `ts`: AS ts"


def test_functions_are_described(t_env):
    assert rows(t_env, "DESCRIBE FUNCTION `SUM`") == [("is system function", "true"), ("is temporary", "false")]
    found = dict(rows(t_env, "DESCRIBE FUNCTION EXTENDED `SUM`"))
    assert found["kind"] == "AGGREGATE" and found["is deterministic"] == "true"
    for create, system in (
        (t_env.create_temporary_system_function, "true"),
        (t_env.create_temporary_function, "false"),
    ):
        create("mine", udf(lambda a: a, result_type=DataTypes.INT(), deterministic=False))
        found = dict(rows(t_env, "DESCRIBE FUNCTION EXTENDED mine"))
        assert (found["is system function"], found["is temporary"]) == (system, "true")
        assert found["is deterministic"] == "false"
        t_env.drop_temporary_system_function("mine")
    with pytest.raises(ValidationException, match="no function nothing"):
        t_env.execute_sql("DESCRIBE FUNCTION nothing")


def test_databases_are_listed_in_order(t_env):
    t_env.execute_sql("CREATE DATABASE b")
    t_env.execute_sql("CREATE DATABASE a")
    assert rows(t_env, "SHOW DATABASES") == [("a",), ("b",), ("default_database",)]


PLUGIN = """
from penstock.table import DataTypes, Module
from penstock.table.udf import udf
from penstock.table.catalogs.memory_catalog import Catalog

class Greetings(Module):
    def __init__(self, greeting):
        self.hello = udf(lambda name: f"{greeting} {name}", result_type=DataTypes.STRING())

    def list_functions(self):
        return ["hello", "upper"]

    def get_function(self, name):
        return self.hello if name.lower() in self.list_functions() else None

def make_module(options):
    return Greetings(options.get("greeting", "hello"))

def make_catalog(options):
    return Catalog(options["default-database"])

def make_nothing(options):
    return None
"""
NAMES = """
[penstock.table.catalogs]
shelf = my_plugin:make_catalog
nothing = my_plugin:make_nothing
[penstock.table.modules]
greetings = my_plugin:make_module
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    (tmp_path / "my_plugin.py").write_text(PLUGIN)
    about = tmp_path / "my_plugin-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(NAMES)
    monkeypatch.syspath_prepend(tmp_path)
    offers.cache_clear()
    yield
    offers.cache_clear()
    sys.modules.pop("my_plugin", None)


def test_sql_makes_catalogs_of_other_packages(t_env, plugin):
    t_env.execute_sql("CREATE CATALOG s WITH ('type' = 'shelf', 'default-database' = 'first')")
    t_env.execute_sql("USE CATALOG s")
    assert rows(t_env, "SHOW DATABASES") == [("first",)]
    with pytest.raises(ValidationException, match="the type 'generic_in_memory' or 'nothing' or 'shelf', not"):
        t_env.execute_sql("CREATE CATALOG x WITH ('type' = 'shelves')")
    with pytest.raises(ValidationException, match=r"the entry point 'nothing' .* makes a Catalog, not None"):
        t_env.execute_sql("CREATE CATALOG x WITH ('type' = 'nothing')")


def test_sql_loads_modules_of_other_packages(t_env, plugin):
    with pytest.raises(ValidationException, match="is core, which has no options; and by entry points greetings"):
        t_env.execute_sql("LOAD MODULE dummy")
    t_env.execute_sql("LOAD MODULE greetings WITH ('greeting' = 'good day')")
    assert rows(t_env, "SHOW MODULES") == [("core",), ("greetings",)]
    assert ("hello",) in rows(t_env, "SHOW FUNCTIONS")
    assert rows(t_env, "SELECT Hello('Ada'), UPPER('a')") == [("good day Ada", "A")]
    t_env.execute_sql("USE MODULES greetings, core")
    assert rows(t_env, "SELECT UPPER('a'), LOWER('B')") == [("good day a", "b")]
    t_env.execute_sql("USE MODULES core")
    with pytest.raises(ValidationException, match="there is no function HELLO"):
        t_env.execute_sql("SELECT hello('Ada')")
