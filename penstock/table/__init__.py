"""What DataStream programs import from pyflink.table. DataTypes work; there is no Table API, and its names say so."""

from penstock.absent import absent
from penstock.common import Row, RowKind
from penstock.table.types import DataTypes

_ADVICE = "there is no Table API and no SQL; write the program with DataStreams, or run its SQL with Spark"

EnvironmentSettings = absent("EnvironmentSettings", _ADVICE)
FormatDescriptor = absent("FormatDescriptor", _ADVICE)
Schema = absent("Schema", _ADVICE)
StatementSet = absent("StatementSet", _ADVICE)
StreamTableEnvironment = absent("StreamTableEnvironment", _ADVICE)
Table = absent("Table", _ADVICE)
TableConfig = absent("TableConfig", _ADVICE)
TableDescriptor = absent("TableDescriptor", _ADVICE)
TableEnvironment = absent("TableEnvironment", _ADVICE)
TableResult = absent("TableResult", _ADVICE)

__all__ = [
    "DataTypes",
    "EnvironmentSettings",
    "FormatDescriptor",
    "Row",
    "RowKind",
    "Schema",
    "StatementSet",
    "StreamTableEnvironment",
    "Table",
    "TableConfig",
    "TableDescriptor",
    "TableEnvironment",
    "TableResult",
]
