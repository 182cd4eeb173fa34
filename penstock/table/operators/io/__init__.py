"""Sources and sinks of a query, and operators that look at one row at a time."""
