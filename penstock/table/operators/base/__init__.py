"""The bases of a query's operators, and what several of them use."""
