"""The name of a side output."""

from penstock.api.output_tag import OutputTag

__all__ = ["OutputTag"]
