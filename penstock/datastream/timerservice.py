"""Timers, under the name of PyFlink's module."""

from penstock.datastream.functions import TimerService

__all__ = ["TimerService"]
