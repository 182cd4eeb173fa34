"""Helpers under the names of PyFlink's package."""
