"""The Spark session of a job: its JVM, settings, versions, executors, and reasons why slots do not start."""
