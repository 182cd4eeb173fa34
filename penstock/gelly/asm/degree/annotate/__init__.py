"""Degrees as values of vertices and edges: modules for directed and for undirected graphs."""
