"""Joins of streams."""
