"""Looks up every order's customer in a service that answers slowly and sometimes not at all."""

import asyncio

from penstock.common import Time, Types
from penstock.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    RuntimeContext,
    StreamExecutionEnvironment,
)

CUSTOMERS = {1: "Ann, Oslo", 2: "Bo, Rome", 3: "Cy, Graz"}
ORDERS = [("book", 1), ("lamp", 3), ("pen", 2), ("cup", 9), ("rug", 1), ("jar", 4)]


class Service:
    """Stands for a system far away: 20 ms for an answer; each first question about Cy fails; customer 4 hangs."""

    def __init__(self) -> None:
        self.refused = False

    async def customer(self, number: int) -> str | None:
        await asyncio.sleep(60 if number == 4 else 0.02)
        if number == 3 and not self.refused:
            self.refused = True
            raise ConnectionError("too many requests")
        return CUSTOMERS.get(number)


class Customer(AsyncFunction):
    """One line for an order whose customer is known, none for others."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.service = Service()

    async def async_invoke(self, value: tuple[str, int]) -> list[str]:
        customer = await self.service.customer(value[1])
        return [] if customer is None else [f"{value[0]}: {customer}"]

    def timeout(self, value: tuple[str, int]) -> list[str]:
        return [f"{value[0]}: the service does not answer"]


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=1)
    again = AsyncRetryStrategy.fixed_delay(3, 10, None, lambda error: isinstance(error, ConnectionError))
    orders = environment.from_collection(ORDERS)
    lines = AsyncDataStream.ordered_wait_with_retry(
        orders, Customer(), Time.milliseconds(500), again, capacity=10, output_type=Types.STRING()
    )
    with lines.execute_and_collect("async lookups") as results:
        for line in results:
            print(line)


if __name__ == "__main__":
    main()
