"""The plan of a DataSet program: its steps, the kinds of their elements, and the keys."""
