"""Which clock a timer follows."""

from penstock.vocabulary.time_domain import TimeDomain

__all__ = ["TimeDomain"]
