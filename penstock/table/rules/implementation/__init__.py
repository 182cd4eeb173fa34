"""Implementation rules: each chooses the physical nodes of a relation."""
