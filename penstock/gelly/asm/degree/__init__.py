"""Degrees of vertices, and filters by them."""
