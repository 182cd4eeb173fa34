"""Connectors to systems outside the job."""
