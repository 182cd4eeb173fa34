"""Python's `logging` across the processes of a job: levels, lines that travel, and how they are written."""
