"""Columns of a table that are in the names of its folders, as in Hive: `day=2024-01-01/hour=7/`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from penstock.connectors.files.buckets import BucketAssigner
from penstock.errors import SchemaMismatch
from penstock.table import functions
from penstock.table.connectors.print_table import java_text
from penstock.table.logical.nodes import Column, Columns
from penstock.table.logical.rex import Literal
from penstock.table.types import data_types as t

DEFAULT_NAME = "__DEFAULT_PARTITION__"
_ESCAPED = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{\\[\\]^]")
"""Characters that the name of a folder must not contain unescaped."""


@dataclass(frozen=True)
class Partitions:
    """The columns by which a table is partitioned, in the order of its folders."""

    keys: Columns
    default_name: str = DEFAULT_NAME
    """Value in a path for NULL, and for an empty text."""

    def folder(self, values: Sequence[Any]) -> str:
        """Return the path of the folder for rows with these values."""
        parts = zip(self.keys, values, strict=True)
        return "/".join(f"{_escape(key.name)}={self._text(value, key)}" for key, value in parts)

    def _text(self, value: Any, key: Column) -> str:
        text = "" if value is None else java_text(value, key.type)
        return _escape(text or self.default_name)

    def texts(self, url: str) -> tuple[str | None, ...]:
        """Return the values in a file's path as texts, None for NULL."""
        folders = url.split("/")[:-1]
        found = {unquote(name): unquote(text) for name, sign, text in (one.partition("=") for one in folders) if sign}
        missing = [key.name for key in self.keys if key.name not in found]
        if missing:
            raise SchemaMismatch(
                f"{url} is not in a folder {missing[0]}=..., but its table is partitioned by "
                f"{', '.join(key.name for key in self.keys)}"
            )
        texts = (found[key.name] for key in self.keys)
        return tuple(None if text == self.default_name else text for text in texts)

    def values(self, url: str) -> tuple[Any, ...]:
        """Return the values in a file's path, in the types of their columns."""
        return tuple(_parse_value(text, key, url) for text, key in zip(self.texts(url), self.keys, strict=True))


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _parse_value(text: str | None, key: Column, url: str) -> Any:
    if text is None:
        return None
    literal = Literal(t.DataTypes.STRING().not_null(), text)
    found = functions.constant(functions.cast(literal, key.type))
    if found is None:
        raise SchemaMismatch(f"{url}: {text!r} is no {key.type.as_sql()}, which the column {key.name} is")
    return found.value


@dataclass(frozen=True)
class PartitionFolders(BucketAssigner):
    """A folder for each combination of values. `places` are the positions of the keys in a row."""

    partitions: Partitions
    places: tuple[int, ...]

    def get_bucket_id(self, element: Any, context: Any) -> str:
        return self.partitions.folder([element[place] for place in self.places])
