"""The columns of a resolved schema: stored columns, computed ones, and metadata of the connector."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Self

from penstock.base.arguments import check_arguments
from penstock.table.types.data_types import DataType

__all__ = [
    "Column",
    "ComputedColumn",
    "Constraint",
    "MetadataColumn",
    "PhysicalColumn",
    "UniqueConstraint",
    "WatermarkSpec",
]


@check_arguments
@dataclass(frozen=True)
class Column:
    """A column with its type."""

    name: str
    data_type: DataType
    comment: str | None = None
    time: str | None = None
    """ROWTIME or PROCTIME, if the column is the time of the rows."""

    @staticmethod
    def physical(name: str, data_type: DataType) -> PhysicalColumn:
        """Make a column that is stored."""
        return PhysicalColumn(name, data_type)

    @staticmethod
    def computed(name: str, resolved_expression: Any, data_type: DataType | None = None) -> ComputedColumn:
        """Make a column that is computed from others of the row."""
        kind = data_type if data_type is not None else resolved_expression.get_output_data_type()
        return ComputedColumn(name, kind, expression=resolved_expression)

    @staticmethod
    def metadata(name: str, data_type: DataType, metadata_key: str | None, is_virtual: bool) -> MetadataColumn:
        """Make a column with metadata of a record from the connector."""
        return MetadataColumn(name, data_type, key=metadata_key, virtual=is_virtual)

    def with_comment(self, comment: str | None) -> Self:
        """Return the same column with another comment."""
        return replace(self, comment=comment)

    def copy(self, new_type: DataType) -> Self:
        """Return the same column with another type."""
        return replace(self, data_type=new_type)

    def rename(self, new_name: str) -> Self:
        """Return the same column with another name."""
        return replace(self, name=new_name)

    def is_physical(self) -> bool:
        """Return True if the column is part of the record."""
        return False

    def is_persisted(self) -> bool:
        """Return True if the column is written."""
        return False

    def get_name(self) -> str:
        """Return the name."""
        return self.name

    def get_data_type(self) -> DataType:
        """Return the type."""
        return self.data_type

    def get_comment(self) -> str | None:
        """Return the comment."""
        return self.comment

    def explain_extras(self) -> str | None:
        """Return the column's expression or metadata key; None if the column is stored."""
        return None

    def as_summary_string(self) -> str:
        """Return the column as text: its name, its type, and its expression or metadata."""
        return f"`{self.name}` {self.summary()}"

    def summary(self) -> str:
        """Return everything except the name."""
        parts = (self.data_type.as_sql(), f"*{self.time}*" if self.time else None, self.explain_extras())
        return " ".join(part for part in parts if part)

    def __str__(self) -> str:
        return self.as_summary_string()


@check_arguments
@dataclass(frozen=True)
class PhysicalColumn(Column):
    """A column that is stored."""

    def is_physical(self) -> bool:
        return True

    def is_persisted(self) -> bool:
        return True


@check_arguments
@dataclass(frozen=True)
class ComputedColumn(Column):
    """A column that is computed from others of the row."""

    expression: Any = None

    def get_expression(self) -> Any:
        """Return the expression."""
        return self.expression

    def explain_extras(self) -> str | None:
        return f"AS {self.expression}"


@check_arguments
@dataclass(frozen=True)
class MetadataColumn(Column):
    """A column with metadata of a record from the connector, such as the offset."""

    key: str | None = None
    virtual: bool = False

    def is_virtual(self) -> bool:
        """Return True if the column is only read."""
        return self.virtual

    def is_persisted(self) -> bool:
        return not self.virtual

    def get_metadata_key(self) -> str | None:
        """Return the key in the connector; None if it is the column's name."""
        return self.key

    def explain_extras(self) -> str | None:
        origin = f" FROM '{self.key}'" if self.key and self.key != self.name else ""
        return f"METADATA{origin}{' VIRTUAL' if self.virtual else ''}"


@check_arguments
@dataclass(frozen=True)
class WatermarkSpec:
    """A column of event time, with its type and the expression of its watermark."""

    rowtime_attribute: str
    watermark_expression: Any
    data_type: DataType | None = None

    @staticmethod
    def of(rowtime_attribute: str, watermark_expression: Any) -> WatermarkSpec:
        """Return the watermark of a column."""
        return WatermarkSpec(rowtime_attribute, watermark_expression)

    def get_rowtime_attribute(self) -> str:
        """Return the name of the event-time column."""
        return self.rowtime_attribute

    def get_watermark_expression(self) -> Any:
        """Return the expression of the watermark."""
        return self.watermark_expression

    def as_summary_string(self) -> str:
        """Return the watermark as text."""
        return f"WATERMARK FOR `{self.rowtime_attribute}`: {self.summary()}"

    def summary(self) -> str:
        """Return everything except the name of the column."""
        kind = "" if self.data_type is None else f"{self.data_type.as_sql()} "
        return f"{kind}AS {self.watermark_expression}"

    __str__ = as_summary_string


@check_arguments
@dataclass(frozen=True)
class Constraint:
    """A condition that holds for all rows of a table."""

    class ConstraintType(Enum):
        """Kinds of constraints."""

        PRIMARY_KEY = 0
        UNIQUE_KEY = 1

    name: str

    def get_name(self) -> str:
        """Return the name."""
        return self.name

    def is_enforced(self) -> bool:
        """Return False: constraints are trusted, not checked."""
        return False

    def get_type(self) -> Constraint.ConstraintType:
        """Return the kind of constraint, which is always a primary key."""
        return Constraint.ConstraintType.PRIMARY_KEY

    def as_summary_string(self) -> str:
        """Return the constraint in SQL."""
        raise NotImplementedError(f"{type(self).__name__}: a constraint must define the method as_summary_string")


@check_arguments
@dataclass(frozen=True)
class UniqueConstraint(Constraint):
    """The columns that distinguish the rows of a table."""

    columns: tuple[str, ...] = ()

    @staticmethod
    def primary_key(name: str, columns: list[str]) -> UniqueConstraint:
        """Return a primary key."""
        return UniqueConstraint(name, tuple(columns))

    def get_columns(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.columns)

    def get_type_string(self) -> str:
        """Return the kind of constraint in SQL."""
        return "PRIMARY KEY"

    def as_summary_string(self) -> str:
        names = ", ".join(f"`{name}`" for name in self.columns)
        return f"CONSTRAINT `{self.name}` {self.get_type_string()} ({names}) NOT ENFORCED"

    __str__ = as_summary_string
