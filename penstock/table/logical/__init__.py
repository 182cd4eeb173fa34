"""A query as a tree of relations with typed expressions: what the parser and the Table API make, and operators run."""
