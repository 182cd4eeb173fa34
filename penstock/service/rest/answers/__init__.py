"""Flink's JSON answers, as pure functions of records."""
