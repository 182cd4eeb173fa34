"""Queryable state: what clients ask, what they are answered, and how questions and answers travel."""
