from pyflink.common import Types
from pyflink.datastream.functions import BroadcastProcessFunction
from pyflink.datastream.state import MapStateDescriptor

from .model import Order

PRICES = MapStateDescriptor("prices", Types.STRING(), Types.INT())


class Priced(BroadcastProcessFunction):
    """Keeps orders until their price has come, since nothing says which side is first."""

    def __init__(self):
        self.waiting = []

    def process_element(self, value: Order, ctx: BroadcastProcessFunction.ReadOnlyContext):
        price = ctx.get_broadcast_state(PRICES).get(value.article)
        if price is None:
            self.waiting.append(value)
        else:
            yield text(value, price)

    def process_broadcast_element(self, value, ctx: BroadcastProcessFunction.Context):
        ctx.get_broadcast_state(PRICES).put(value[0], value[1])
        ready = [order for order in self.waiting if order.article == value[0]]
        self.waiting = [order for order in self.waiting if order.article != value[0]]
        for order in ready:
            yield text(order, value[1])


def text(order, price):
    return f"{type(order).__name__} {order.article}: {order.total(price)}"
