"""What a program is made of, and the engine reads: functions, windows, state descriptors, settings.

It imports nothing of the engine.
"""
