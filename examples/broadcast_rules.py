"""Checks payments against limits that arrive on a stream of their own and are broadcast to every subtask."""

from collections.abc import Iterator
from typing import Any

from penstock.common import Types
from penstock.datastream import BroadcastProcessFunction, RuntimeExecutionMode, StreamExecutionEnvironment
from penstock.datastream.state import MapStateDescriptor

LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.INT())
RULES = [("EUR", 100), ("JPY", 15_000), ("EUR", 200)]  # (currency, limit); a later rule replaces an earlier one
PAYMENTS = [("p1", "EUR", 150), ("p2", "JPY", 20_000), ("p3", "EUR", 250), ("p4", "CHF", 90)]


class Check(BroadcastProcessFunction):
    """Lets a payment pass if it is within the limit of its currency."""

    def process_element(
        self, value: tuple[str, str, int], ctx: BroadcastProcessFunction.ReadOnlyContext
    ) -> Iterator[Any]:
        payment, currency, amount = value
        limit = ctx.get_broadcast_state(LIMITS).get(currency)
        if limit is None:
            yield payment, f"no limit for {currency}"
        else:
            yield payment, f"{amount} {currency} {'passes' if amount <= limit else f'is above {limit}'}"

    def process_broadcast_element(self, value: tuple[str, int], ctx: BroadcastProcessFunction.Context) -> None:
        currency, limit = value
        ctx.get_broadcast_state(LIMITS).put(currency, limit)


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
    # In BATCH mode the broadcast side is complete before the first payment. In STREAMING mode either may come first.
    environment.set_runtime_mode(RuntimeExecutionMode.BATCH)
    rules = environment.from_collection(RULES).broadcast(LIMITS)
    checked = environment.from_collection(PAYMENTS).connect(rules).process(Check())
    with checked.execute_and_collect("payments") as results:
        for payment, verdict in sorted(results):
            print(payment, verdict)


if __name__ == "__main__":
    main()
