"""Elasticsearch: indices as sinks."""
