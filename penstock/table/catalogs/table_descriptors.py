"""TableDescriptor and FormatDescriptor: CREATE TABLE in Python."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from penstock.base.arguments import check_arguments
from penstock.common.config_options import ConfigOption
from penstock.errors import ValidationException
from penstock.table.catalogs.table_declaration import Schema

__all__ = ["FormatDescriptor", "TableDescriptor"]


@check_arguments
@dataclass(frozen=True)
class FormatDescriptor:
    """A format with its options, for `TableDescriptor.format`.

    >>> FormatDescriptor.for_format("json").option("ignore-parse-errors", "true").build().get_options()
    {'ignore-parse-errors': 'true'}
    """

    name: str
    options: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def for_format(format: str) -> FormatDescriptor.Builder:
        """Return a builder for a format, such as `json`."""
        return FormatDescriptor.Builder(FormatDescriptor(format))

    def __str__(self) -> str:
        return f"{self.name}[{{{', '.join(f'{key}={value}' for key, value in self.options.items())}}}]"

    def get_format(self) -> str:
        """Return the name of the format."""
        return self.name

    def get_options(self) -> dict[str, str]:
        """Return the options."""
        return dict(self.options)

    @check_arguments
    @dataclass
    class Builder:
        """A builder of a format."""

        _made: FormatDescriptor

        def option(self, key: str | ConfigOption[Any], value: str | int | float | bool) -> FormatDescriptor.Builder:
            """Set an option of the format, and return this builder."""
            self._made = replace(self._made, options={**self._made.options, _name(key): _text(value)})
            return self

        def build(self) -> FormatDescriptor:
            """Return the format."""
            return self._made


@check_arguments
@dataclass(frozen=True)
class TableDescriptor:
    """An external table: connector, schema, options.

    >>> TableDescriptor.for_connector("datagen").option("number-of-rows", 3).build().get_options()
    {'connector': 'datagen', 'number-of-rows': '3'}
    """

    declared: Schema | None = None
    options: dict[str, str] = field(default_factory=dict)
    partition_keys: tuple[str, ...] = ()
    comment: str | None = None

    @staticmethod
    def for_connector(connector: str) -> TableDescriptor.Builder:
        """Return a builder for a table of a connector, such as `kafka`."""
        return TableDescriptor.Builder(TableDescriptor(options={"connector": connector}))

    def __str__(self) -> str:
        parts = ["" if self.declared is None else str(self.declared)]
        if self.comment:
            parts.append(f"COMMENT {_quote(self.comment)}")
        if self.partition_keys:
            parts.append(f"PARTITIONED BY ({', '.join(f'`{key}`' for key in self.partition_keys)})")
        options = ",\n".join(f"  {_quote(key)} = {_quote(value)}" for key, value in sorted(self.options.items()))
        return "\n".join([*parts, f"WITH (\n{options}\n)"])

    def get_schema(self) -> Schema | None:
        """Return the schema; None if it is not set."""
        return self.declared

    def get_options(self) -> dict[str, str]:
        """Return the options."""
        return dict(self.options)

    def get_partition_keys(self) -> list[str]:
        """Return the columns by which the table is partitioned."""
        return list(self.partition_keys)

    def get_comment(self) -> str | None:
        """Return the comment."""
        return self.comment

    @check_arguments
    @dataclass
    class Builder:
        """A builder of a table."""

        _made: TableDescriptor

        def schema(self, schema: Schema) -> TableDescriptor.Builder:
            """Set the schema, and return this builder."""
            return self._with(declared=schema)

        def option(self, key: str | ConfigOption[Any], value: str | int | float | bool) -> TableDescriptor.Builder:
            """Set an option of the connector, and return this builder."""
            return self._with(options={**self._made.options, _name(key): _text(value)})

        def format(
            self, format: str | FormatDescriptor, format_option: ConfigOption[str] | None = None
        ) -> TableDescriptor.Builder:
            """Set the format of the records.

            Connectors with several formats have a `format_option`, such as "key.format".
            """
            option = "format" if format_option is None else format_option.key
            if not option.endswith("format"):
                raise ValidationException(f"the name of a format option must end in 'format', not be {option}")
            descriptor = FormatDescriptor(format) if isinstance(format, str) else format
            prefix = option.removesuffix("format") + descriptor.name
            options = {f"{prefix}.{key}": value for key, value in descriptor.options.items()}
            return self._with(options={**self._made.options, option: descriptor.name, **options})

        def partitioned_by(self, *partition_keys: str) -> TableDescriptor.Builder:
            """Set the columns by which the table is partitioned, and return this builder."""
            return self._with(partition_keys=partition_keys)

        def comment(self, comment: str) -> TableDescriptor.Builder:
            """Set the comment, and return this builder."""
            return self._with(comment=comment)

        def build(self) -> TableDescriptor:
            """Return the table."""
            return self._made

        def _with(self, **changes: Any) -> TableDescriptor.Builder:
            self._made = replace(self._made, **changes)
            return self


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _name(key: str | ConfigOption[Any]) -> str:
    return key.key if isinstance(key, ConfigOption) else key


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
