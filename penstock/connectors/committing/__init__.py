"""Base classes for users' own sinks that commit after checkpoints: in two phases, prepared, or written ahead."""
