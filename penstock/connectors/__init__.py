"""Connectors to systems outside the job, one package for each.

Programs import them from `penstock.datastream.connectors`.
"""
