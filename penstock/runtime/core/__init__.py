"""The contract of operators, what flows between them, time, and the slot that drives them."""
