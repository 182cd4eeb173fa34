"""The nodes of the physical plan."""
