"""OVER windows."""
