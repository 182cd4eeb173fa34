"""Filters by degrees."""
