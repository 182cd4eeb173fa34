"""Keyed operators in BATCH mode: their input is sorted by key in bounded memory."""
