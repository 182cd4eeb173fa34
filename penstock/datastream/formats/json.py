"""JSON: messages of one object each, and files with one value a line."""

from penstock.formats.json import (
    JsonLinesEncoder,
    JsonLinesFormat,
    JsonLinesWriters,
    JsonRowDeserializationSchema,
    JsonRowSerializationSchema,
)

__all__ = [
    "JsonLinesEncoder",
    "JsonLinesFormat",
    "JsonLinesWriters",
    "JsonRowDeserializationSchema",
    "JsonRowSerializationSchema",
]
