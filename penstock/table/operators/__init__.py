"""Operators of queries: they take and send Arrow batches, and keep their state in the tables of the slot."""
