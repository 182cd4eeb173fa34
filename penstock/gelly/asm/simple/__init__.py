"""Graphs without loops and parallel edges: modules for directed and for undirected graphs."""
