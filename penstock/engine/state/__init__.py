"""Keyed state: key groups, tables on the heap and in RocksDB, state objects, and how saved state evolves."""
