"""Iterations: a superstep is an epoch of resident slots, and the driver decides after each whether another follows."""
