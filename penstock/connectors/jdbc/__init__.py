"""SQL databases: queries as sources, tables as sinks, lookups."""
