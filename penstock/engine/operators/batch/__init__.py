"""Keyed operators in BATCH mode. Their input is sorted by key in bounded memory."""
