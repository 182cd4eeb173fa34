"""Slots on Spark: the tasks and processes of one attempt of a job."""
