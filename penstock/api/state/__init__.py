"""State as programs declare and use it: descriptors, the kinds of state, and how long they live."""
