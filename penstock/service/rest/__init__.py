"""Flink's REST interface over records of jobs."""
