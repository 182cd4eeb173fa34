"""Kafka: topics as sources and sinks, offsets, and transactions."""
