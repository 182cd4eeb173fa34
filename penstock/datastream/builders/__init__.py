"""The builders of streams that are not in PyFlink's modules of their own."""
