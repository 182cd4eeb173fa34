"""Which clock a timer follows."""

from penstock.api.time_domain import TimeDomain

__all__ = ["TimeDomain"]
