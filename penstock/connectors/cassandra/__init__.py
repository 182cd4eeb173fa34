"""Cassandra: tables as sinks."""
