"""Queries inside of expressions become joins."""
