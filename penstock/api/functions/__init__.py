"""The functions that users write, and the contexts that they are given."""
