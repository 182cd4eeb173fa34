"""A slot: the operators of one subtask index, run epoch by epoch."""
