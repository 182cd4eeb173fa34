"""A class hierarchy over PyFlink's own: the library's functions keep one value per key."""

from abc import abstractmethod

from pyflink.common import Types
from pyflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from pyflink.datastream.state import ValueStateDescriptor


class OneValue(KeyedProcessFunction):
    name = "value"

    def open(self, runtime_context: RuntimeContext):
        self.held = runtime_context.get_state(ValueStateDescriptor(self.name, Types.DOUBLE()))

    def process_element(self, value, ctx: "KeyedProcessFunction.Context"):
        before = self.held.value()
        after, results = self.step(ctx.get_current_key(), before, value[1])
        self.held.update(after)
        yield from results

    @abstractmethod
    def step(self, key, before, reading):
        """The new value, and what to emit."""
