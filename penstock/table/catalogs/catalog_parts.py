"""Partitions of tables, and models, in the form in which catalogs hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.base.arguments import check_arguments
from penstock.table.catalogs.table_declaration import Schema

__all__ = ["CatalogModel", "CatalogPartition", "CatalogPartitionSpec"]


@check_arguments
@dataclass(frozen=True)
class CatalogPartitionSpec:
    """Values of the columns by which a table is partitioned, or of some of them."""

    partition_spec: Mapping[str, str]

    def get_partition_spec(self) -> dict[str, str]:
        """Return the values by the names of columns."""
        return dict(self.partition_spec)

    def __hash__(self) -> int:
        return hash(frozenset(self.partition_spec.items()))

    def __str__(self) -> str:
        return f"CatalogPartitionSpec{{{dict(self.partition_spec)}}}"


class Described:
    """Something in a catalog that has properties and a comment."""

    properties: Mapping[str, str]
    comment: str | None

    def get_properties(self) -> dict[str, str]:
        """Return the properties."""
        return dict(self.properties)

    def get_comment(self) -> str | None:
        """Return the comment."""
        return self.comment

    def get_description(self) -> str | None:
        """Return the comment."""
        return self.comment

    def get_detailed_description(self) -> str | None:
        """Return the comment."""
        return self.comment


@check_arguments
@dataclass(frozen=True)
class CatalogPartition(Described):
    """A partition of a table: properties and a comment."""

    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    @staticmethod
    def create_instance(properties: Mapping[str, str], comment: str | None = None) -> CatalogPartition:
        """Return a partition."""
        return CatalogPartition(dict(properties), comment)

    def copy(self) -> CatalogPartition:
        """Return a copy with its own properties."""
        return replace(self, properties=dict(self.properties))


@check_arguments
@dataclass(frozen=True)
class CatalogModel:
    """A model: the columns of its input and output, and options. No query can call one."""

    input_schema: Schema
    output_schema: Schema
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None

    @staticmethod
    def create_model(
        input_schema: Schema,
        output_schema: Schema,
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> CatalogModel:
        """Return a model."""
        return CatalogModel(input_schema, output_schema, dict(options or {}), comment)

    def get_options(self) -> dict[str, str]:
        """Return the options."""
        return dict(self.options)

    def get_comment(self) -> str | None:
        """Return the comment."""
        return self.comment

    def copy(self) -> CatalogModel:
        """Return a copy with its own options."""
        return replace(self, options=dict(self.options))
