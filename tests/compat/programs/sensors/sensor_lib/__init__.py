from .data import READINGS
from .statistics import Deviation, Smoothed

__all__ = ["READINGS", "Deviation", "Smoothed"]
