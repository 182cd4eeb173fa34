"""The way of records from the subtasks of one operator to those of the next."""
