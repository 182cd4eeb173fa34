"""Joins orders with the payments of the same customer in the same ten minutes."""

from penstock.common import Time, WatermarkStrategy
from penstock.datastream import StreamExecutionEnvironment
from penstock.datastream.window import TumblingEventTimeWindows

ORDERS = [("ann", 1, "book"), ("bo", 2, "lamp"), ("ann", 12, "pen")]  # (customer, minute, what)
PAYMENTS = [("ann", 8, 20), ("ann", 13, 3), ("bo", 19, 45)]  # (customer, minute, amount)


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event: event[1] * 60_000)
    orders = environment.from_collection(ORDERS).assign_timestamps_and_watermarks(strategy)
    payments = environment.from_collection(PAYMENTS).assign_timestamps_and_watermarks(strategy)
    paid = (
        orders.join(payments)
        .where(lambda order: order[0])
        .equal_to(lambda payment: payment[0])
        .window(TumblingEventTimeWindows.of(Time.minutes(10)))
        .apply(lambda order, payment: f"{order[0]} {order[2]} {payment[2]}")
    )
    unmatched = (
        orders.co_group(payments)
        .where(lambda order: order[0])
        .equal_to(lambda payment: payment[0])
        .window(TumblingEventTimeWindows.of(Time.minutes(10)))
        .apply(lambda bought, paid: [f"{order[0]} {order[2]} unpaid" for order in bought if not paid])
    )
    with paid.union(unmatched).execute_and_collect("window join") as results:
        for line in sorted(results):
            print(line)


if __name__ == "__main__":
    main()
