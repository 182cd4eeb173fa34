"""The contents of savepoints as plain Python, which the state processor reads, checks and changes."""
