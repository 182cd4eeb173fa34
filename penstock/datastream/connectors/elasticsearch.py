"""Elasticsearch indices as sinks, for servers from version 7.14."""

from penstock.connectors.elasticsearch.sinks import (
    Elasticsearch7SinkBuilder,
    ElasticsearchEmitter,
    ElasticsearchSink,
    ElasticsearchSinkBuilderBase,
    FlushBackoffType,
)

__all__ = [
    "Elasticsearch7SinkBuilder",
    "ElasticsearchEmitter",
    "ElasticsearchSink",
    "ElasticsearchSinkBuilderBase",
    "FlushBackoffType",
]
