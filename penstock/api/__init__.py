"""The parts of a program that the engine reads: functions, windows, state descriptors, settings.

This package imports nothing from the engine.
"""
