"""The operator contract, the bases of operators, and the operators that run users' functions."""
