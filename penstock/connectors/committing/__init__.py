"""Sinks of users' own that commit behind checkpoints: in two phases, prepared, or written ahead."""
