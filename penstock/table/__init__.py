"""The Table API and SQL under PyFlink's names.

Names are resolved when they are first used (PEP 562): a program that only wants DataTypes needs neither Arrow nor the
parser.
"""

from typing import TYPE_CHECKING

from penstock.common import Row, RowKind
from penstock.lazy_names import lazy_names
from penstock.table.types import DataTypes, UserDefinedType

if TYPE_CHECKING:
    from penstock.table.changelog_mode import ChangelogMode
    from penstock.table.data_view import DataView, ListView, MapView
    from penstock.table.environment import TableEnvironment
    from penstock.table.environment_settings import EnvironmentSettings
    from penstock.table.explain_detail import ExplainDetail
    from penstock.table.expression import Expression
    from penstock.table.grouped_table import GroupedTable, GroupWindowedTable, OverWindowedTable, WindowGroupedTable
    from penstock.table.module import Module, ModuleEntry
    from penstock.table.resolved_schema import ResolvedSchema, TableSchema
    from penstock.table.result_kind import ResultKind
    from penstock.table.schema import Schema
    from penstock.table.sql_dialect import SqlDialect
    from penstock.table.statement_set import StatementSet, TablePipeline
    from penstock.table.stream_environment import StreamTableEnvironment
    from penstock.table.table import Table
    from penstock.table.table_config import TableConfig
    from penstock.table.table_descriptor import FormatDescriptor, TableDescriptor
    from penstock.table.table_result import TableResult
    from penstock.table.udf import (
        AggregateFunction,
        AsyncScalarFunction,
        FunctionContext,
        ScalarFunction,
        TableAggregateFunction,
        TableFunction,
    )

_NAMES = {
    ".changelog_mode": "ChangelogMode",
    ".data_view": "DataView ListView MapView",
    ".environment": "TableEnvironment",
    ".environment_settings": "EnvironmentSettings",
    ".explain_detail": "ExplainDetail",
    ".expression": "Expression",
    ".grouped_table": "GroupedTable GroupWindowedTable OverWindowedTable WindowGroupedTable",
    ".resolved_schema": "ResolvedSchema TableSchema",
    ".result_kind": "ResultKind",
    ".schema": "Schema",
    ".sql_dialect": "SqlDialect",
    ".statement_set": "StatementSet TablePipeline",
    ".stream_environment": "StreamTableEnvironment",
    ".table": "Table",
    ".table_config": "TableConfig",
    ".table_descriptor": "FormatDescriptor TableDescriptor",
    ".table_result": "TableResult",
    ".module": "Module ModuleEntry",
    ".udf": "AggregateFunction AsyncScalarFunction FunctionContext ScalarFunction TableAggregateFunction TableFunction",
    ".catalog": "",
    ".expressions": "",
    ".window": "",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES, ("The Table API with SQL", "table"))

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "ChangelogMode",
    "DataTypes",
    "DataView",
    "EnvironmentSettings",
    "ExplainDetail",
    "Expression",
    "FormatDescriptor",
    "FunctionContext",
    "GroupWindowedTable",
    "GroupedTable",
    "ListView",
    "MapView",
    "Module",
    "ModuleEntry",
    "OverWindowedTable",
    "ResolvedSchema",
    "ResultKind",
    "Row",
    "RowKind",
    "ScalarFunction",
    "Schema",
    "SqlDialect",
    "StatementSet",
    "StreamTableEnvironment",
    "Table",
    "TableAggregateFunction",
    "TableConfig",
    "TableDescriptor",
    "TableEnvironment",
    "TableFunction",
    "TablePipeline",
    "TableResult",
    "TableSchema",
    "UserDefinedType",
    "WindowGroupedTable",
]
