"""Leaves that know nothing of streams: storage, pickling, names in checkpoints, optional libraries, logs."""
