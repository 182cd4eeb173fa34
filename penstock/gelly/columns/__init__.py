"""Graphs in columns: vertices have dense numbers, edges are sorted arrays, and a superstep is a few numpy calls."""

from penstock.base.libraries import explain_missing

with explain_missing("an algorithm of penstock.gelly", "gelly"):
    import numpy  # noqa: F401 - so that a missing library is named
