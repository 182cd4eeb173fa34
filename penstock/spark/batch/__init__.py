"""BATCH jobs as ordinary Spark jobs."""
