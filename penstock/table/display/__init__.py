"""How tables, results and environments show themselves: printed, in notebooks, and live while a query runs."""
