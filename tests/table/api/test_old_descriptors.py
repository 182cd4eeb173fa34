"""The descriptors from before Flink 1.14 give the properties that they gave there."""

import pytest

from penstock.errors import InvalidArgument, UnsupportedOperation, ValidationException
from penstock.table import DataTypes, TableSchema
from penstock.table.descriptors import Rowtime, Schema


def test_event_time():
    rowtime = Rowtime().timestamps_from_source().watermarks_periodic_ascending()
    rowtime.timestamps_from_field("t").watermarks_periodic_bounded(2000)
    assert rowtime.to_properties() == {
        "rowtime.timestamps.type": "from-field",
        "rowtime.timestamps.from": "t",
        "rowtime.watermarks.type": "periodic-bounded",
        "rowtime.watermarks.delay": "2000",
    }
    assert Rowtime().watermarks_from_source().to_properties() == {"rowtime.watermarks.type": "from-source"}


@pytest.mark.parametrize("method", ["timestamps_from_extractor", "watermarks_from_strategy"])
def test_classes_of_java_are_refused(method):
    with pytest.raises(UnsupportedOperation, match=r"org\.example\.Mine is a Java class"):
        getattr(Rowtime(), method)("org.example.Mine")


def test_fields():
    schema = Schema(fields={"a": DataTypes.STRING(False)}).from_origin_field("b").field("c", "SQL_DATE").proctime()
    schema.field("d", DataTypes.TIME()).rowtime(Rowtime().timestamps_from_source())
    assert schema.to_properties() == {
        "schema.0.name": "a",
        "schema.0.data-type": "VARCHAR(2147483647) NOT NULL",
        "schema.0.from": "b",
        "schema.1.name": "c",
        "schema.1.data-type": "DATE",
        "schema.1.proctime": "true",
        "schema.2.name": "d",
        "schema.2.data-type": "TIME(0)",
        "schema.2.rowtime.timestamps.type": "from-source",
    }
    replaced = schema.schema(TableSchema(["n"], [DataTypes.BYTES()]))
    assert replaced.to_properties() == {"schema.0.name": "n", "schema.0.data-type": "VARBINARY(2147483647)"}


def test_what_is_said_of_no_field_is_an_error():
    with pytest.raises(ValidationException, match="'proctime' applies to the last field, and there is no field"):
        Schema().proctime()
    with pytest.raises(InvalidArgument, match=r"Schema\.field: the argument field_type must be"):
        Schema().field("a", 5)
