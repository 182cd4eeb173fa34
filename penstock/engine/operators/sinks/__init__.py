"""Sinks inside a slot: results for the driver, users' sink functions, and sinks that commit after checkpoints."""
