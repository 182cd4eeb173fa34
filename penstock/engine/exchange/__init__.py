"""How records get from the subtasks of one operator to those of the next."""
