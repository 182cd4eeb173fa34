"""Supersteps: iterations over parts of a graph that stay in their slots, with messages between them."""
