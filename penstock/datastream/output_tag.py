"""The name of a side output."""

from penstock.vocabulary.output_tag import OutputTag

__all__ = ["OutputTag"]
