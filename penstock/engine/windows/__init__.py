"""The operators of windows and joins."""
