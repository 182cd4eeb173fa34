"""Settings of a job that are objects: checkpoints, their storage, state backends, execution modes."""
