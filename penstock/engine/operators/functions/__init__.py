"""Operators that call a user's function for each record: elementwise, with keyed state, with timers, asynchronous."""
