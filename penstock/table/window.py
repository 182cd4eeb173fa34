"""Windows of the Table API, under the name of PyFlink's module."""

from penstock.table.api.group_windows import GroupWindow, Over, OverWindow, Session, Slide, Tumble

__all__ = [
    "GroupWindow",
    "Over",
    "OverWindow",
    "Session",
    "Slide",
    "Tumble",
]
