"""The builders of the Table API: tables, grouped tables, results."""
