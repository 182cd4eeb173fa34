"""What savepoints hold, as plain Python: read, checked, and changed by the state processor."""
