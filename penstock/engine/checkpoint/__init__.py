"""The driver's side of checkpoints and savepoints: decisions, metadata, storage, and ownership of the job."""
