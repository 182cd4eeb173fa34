"""Avro: container files of generic records, and messages of one record each."""

from penstock.formats.avro import (
    AvroBulkWriters,
    AvroFormat,
    AvroInputFormat,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    AvroSchema,
    GenericRecordAvroTypeInfo,
)

__all__ = [
    "AvroBulkWriters",
    "AvroFormat",
    "AvroInputFormat",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]
