"""The types of calls: binding, coercion, and the table of functions."""
