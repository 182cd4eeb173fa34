"""Which of several servers leads, and how the others pass requests on to it."""
