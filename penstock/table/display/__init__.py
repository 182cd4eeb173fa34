"""Displays of tables, results and environments: printed, in notebooks, and live while a query runs."""
