"""The Table API and SQL under PyFlink's names.

Names are resolved when they are first used (PEP 562): a program that only wants DataTypes needs neither Arrow nor the
parser.
"""

from typing import TYPE_CHECKING

from penstock.base.lazy_names import lazy_names
from penstock.common import Row, RowKind
from penstock.table.types.data_types import DataTypes, UserDefinedType

if TYPE_CHECKING:
    from penstock.table.api.config import TableConfig
    from penstock.table.api.grouped_table import GroupedTable, GroupWindowedTable, OverWindowedTable, WindowGroupedTable
    from penstock.table.api.results import TableResult
    from penstock.table.api.statement_sets import StatementSet, TablePipeline
    from penstock.table.api.table_api import Table
    from penstock.table.catalogs.function_modules import Module, ModuleEntry
    from penstock.table.catalogs.resolved_schema import ResolvedSchema, TableSchema
    from penstock.table.catalogs.table_declaration import Schema
    from penstock.table.catalogs.table_descriptors import FormatDescriptor, TableDescriptor
    from penstock.table.changelog_mode import ChangelogMode
    from penstock.table.environment_settings import EnvironmentSettings
    from penstock.table.environments.environment import TableEnvironment
    from penstock.table.environments.stream_environment import StreamTableEnvironment
    from penstock.table.explain_detail import ExplainDetail
    from penstock.table.expression.accumulator_views import DataView, ListView, MapView
    from penstock.table.expression.expression import Expression
    from penstock.table.expression.function_declarations import (
        AggregateFunction,
        AsyncScalarFunction,
        FunctionContext,
        ScalarFunction,
        TableAggregateFunction,
        TableFunction,
    )
    from penstock.table.result_kind import ResultKind
    from penstock.table.sql_dialect import SqlDialect

_NAMES = {
    ".changelog_mode": "ChangelogMode",
    ".data_view": "DataView ListView MapView",
    "penstock.table.environments.environment": "TableEnvironment",
    ".environment_settings": "EnvironmentSettings",
    ".explain_detail": "ExplainDetail",
    ".expression": "Expression",
    "penstock.table.api.grouped_table": "GroupedTable GroupWindowedTable OverWindowedTable WindowGroupedTable",
    "penstock.table.catalogs.resolved_schema": "ResolvedSchema TableSchema",
    ".result_kind": "ResultKind",
    ".schema": "Schema",
    ".sql_dialect": "SqlDialect",
    ".statement_set": "StatementSet TablePipeline",
    "penstock.table.environments.stream_environment": "StreamTableEnvironment",
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
