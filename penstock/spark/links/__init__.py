"""Sockets between the driver and the slots, and among the slots."""
