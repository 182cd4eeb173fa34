"""DataTypes: the row types that PyFlink's formats take, as the types that Penstock's take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from penstock.common.typeinfo import RowTypeInfo, TypeInformation, Types
from penstock.formats.decimals import DECIMAL

__all__ = ["DataTypes"]


class Field(NamedTuple):
    """A field of a ROW."""

    name: str
    data_type: TypeInformation


class DataTypes:
    """Types by their SQL names, for the schemas of formats: `DataTypes.BIGINT()` is `Types.LONG()`.

    Whether a column may be null, and the length of texts and binary values, are accepted and not checked.

    >>> DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT())])
    RowTypeInfo(n: Long)
    """

    # ruff: noqa: N802

    @staticmethod
    def STRING(nullable: bool = True) -> TypeInformation:
        return Types.STRING()

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> TypeInformation:
        return Types.STRING()

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> TypeInformation:
        return Types.STRING()

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> TypeInformation:
        return Types.BOOLEAN()

    @staticmethod
    def BYTES(nullable: bool = True) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> TypeInformation:
        return DataTypes.BYTES()

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> TypeInformation:
        return DataTypes.BYTES()

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> TypeInformation:
        return DECIMAL(precision, scale)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TypeInformation:
        return Types.BYTE()

    @staticmethod
    def SMALLINT(nullable: bool = True) -> TypeInformation:
        return Types.SHORT()

    @staticmethod
    def INT(nullable: bool = True) -> TypeInformation:
        return Types.INT()

    @staticmethod
    def BIGINT(nullable: bool = True) -> TypeInformation:
        return Types.LONG()

    @staticmethod
    def FLOAT(nullable: bool = True) -> TypeInformation:
        return Types.FLOAT()

    @staticmethod
    def DOUBLE(nullable: bool = True) -> TypeInformation:
        return Types.DOUBLE()

    @staticmethod
    def DATE(nullable: bool = True) -> TypeInformation:
        return Types.SQL_DATE()

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TypeInformation:
        return Types.SQL_TIME()

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TypeInformation:
        return Types.SQL_TIMESTAMP()

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> TypeInformation:
        return Types.INSTANT()

    @staticmethod
    def ARRAY(element_type: TypeInformation, nullable: bool = True) -> TypeInformation:
        return Types.OBJECT_ARRAY(element_type)

    @staticmethod
    def MAP(key_type: TypeInformation, value_type: TypeInformation, nullable: bool = True) -> TypeInformation:
        return Types.MAP(key_type, value_type)

    @staticmethod
    def FIELD(name: str, data_type: TypeInformation, description: str | None = None) -> Any:
        return Field(name, data_type)

    @staticmethod
    def ROW(row_fields: Iterable[Any], nullable: bool = True) -> RowTypeInfo:
        fields = [Field(*field) for field in row_fields]
        return Types.ROW_NAMED([field.name for field in fields], [field.data_type for field in fields])
