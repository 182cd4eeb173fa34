"""Feedback edges: records that leave the end of a loop in one epoch enter its head in the next one."""
