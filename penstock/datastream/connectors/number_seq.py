"""A bounded source of whole numbers, under PyFlink's name."""

from penstock.connectors.number_seq import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
