"""The driver's side of a job: state machine, epochs, restarts, queries, and the client's handle. Knows no Spark."""
