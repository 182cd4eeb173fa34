"""The plan of a DataSet program: its steps, what is known of their elements, and the keys that they use."""
