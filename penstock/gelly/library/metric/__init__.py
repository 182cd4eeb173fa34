"""Figures of graphs: modules for directed and for undirected graphs."""
