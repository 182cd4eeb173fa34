"""Running a job: commands and reports, the epoch loop, and what a client sees of it. Knows no Spark."""
