"""BATCH mode: the total of each customer, once, when all the input has been read."""

from penstock.common import Types
from penstock.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

ORDER = Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.DOUBLE()])
ORDERS = [("ann", 10.0), ("bo", 5.5), ("ann", 2.5), ("cy", 1.0), ("bo", 4.5)]


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=1)
    environment.set_runtime_mode(RuntimeExecutionMode.BATCH)
    environment.from_collection(ORDERS, ORDER).key_by("customer").sum("amount").print()
    environment.execute("totals")


if __name__ == "__main__":
    main()
