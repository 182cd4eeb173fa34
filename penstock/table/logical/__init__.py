"""The logical plan of a query: a tree of relations with typed expressions. Operators are built from it."""
