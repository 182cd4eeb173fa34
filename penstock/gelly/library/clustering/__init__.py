"""Connections among the neighbours of vertices: modules for directed and for undirected graphs."""
