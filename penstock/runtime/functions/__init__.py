"""The operators that call users' functions for each record:

elementwise, with keyed state, with timers, asynchronous.
"""
