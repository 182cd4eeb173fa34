from . import base
from .texts import sentence


class Smoothed(base.OneValue):
    name = "smoothed"

    def __init__(self, weight):
        self.weight = weight

    def step(self, key, before, reading):
        after = reading if before is None else before + self.weight * (reading - before)
        return after, [(key, after)]


class Deviation(base.OneValue):
    name = "last"

    def step(self, key, before, reading):
        if before is None:
            return reading, []
        return reading, [sentence(key, reading - before)]
