"""The clock of a timer."""

from penstock.api.time_domain import TimeDomain

__all__ = ["TimeDomain"]
