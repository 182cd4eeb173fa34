import re

from pyflink.common import Row
from pyflink.datastream import FlatMapFunction, RuntimeContext


class Splitter(FlatMapFunction):
    pattern = r"\W+"

    def open(self, runtime_context: RuntimeContext):
        self.compiled = re.compile(self.pattern)

    def flat_map(self, value):
        return filter(self.accepts, self.compiled.split(value.lower()))

    def accepts(self, word):
        return bool(word)


class Words(Splitter):
    def __init__(self, minimum=1):
        self.minimum = minimum

    def accepts(self, word):
        return super().accepts(word) and len(word) >= self.minimum


def add(left, right):
    return Row(left[0], left[1] + right[1])
