"""Windows of queries: assignment, aggregates, joins and Top-N within windows, watermarks."""
