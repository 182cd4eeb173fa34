from typing import Iterable, Tuple

from pyflink.common import Types
from pyflink.datastream import OutputTag, ProcessWindowFunction
from pyflink.datastream.window import TimeWindow

HIGH = OutputTag("high", Types.STRING())


class Summary(ProcessWindowFunction[tuple, str, str, TimeWindow]):
    def __init__(self, limit):
        self.limit = limit

    def process(self, key: str, context: "ProcessWindowFunction.Context", elements: Iterable[Tuple]):
        values = [element[2] for element in elements]
        if max(values) > self.limit:
            yield HIGH, f"{key} reached {max(values)}"
        yield f"{key} {context.window().start}-{context.window().end}: {sum(values)}"
