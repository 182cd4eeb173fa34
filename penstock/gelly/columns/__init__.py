"""Graphs in columns: vertices have dense numbers, edges are sorted arrays, and a superstep is a few numpy calls."""
