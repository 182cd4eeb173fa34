"""Spark DataFrames as sources and results of jobs."""
