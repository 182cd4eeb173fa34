"""Top-N, deduplication, ORDER BY and LIMIT."""
