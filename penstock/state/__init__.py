"""Keyed state: key groups, tables and the state objects that functions hold."""
