"""Starts a job from the totals of an older system, which are written as a savepoint that the job takes up."""

from collections.abc import Iterator
from tempfile import TemporaryDirectory

from penstock.common import Configuration, Types
from penstock.datastream import (
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from penstock.state import SavepointReader, SavepointWriter

TOTAL = ValueStateDescriptor("total", Types.LONG())
OLD_TOTALS = [("ann", 1200), ("bo", 450), ("test account", 99)]
PAYMENTS = [("ann", 30), ("cy", 5), ("ann", 20), ("bo", 50)]  # (customer, amount)


class Total(KeyedProcessFunction):
    """The sum of what each customer has paid."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(TOTAL)

    def process_element(self, value: tuple[str, int], ctx: KeyedProcessFunction.Context) -> Iterator[tuple[str, int]]:
        customer, amount = value
        total = (self.total.value() or 0) + amount
        self.total.update(total)
        yield customer, total


def written(folder: str) -> str:
    """The old totals as a savepoint, and a copy of it without the test account."""
    first = SavepointWriter.new(parallelism=2).with_keyed_state("totals", TOTAL, OLD_TOTALS).write(f"{folder}/first")
    cleaned = SavepointWriter.from_existing(first).transform_state(
        "totals", "total", lambda key, namespace, value: None if key == "test account" else value
    )
    return cleaned.write(f"{folder}/cleaned")


def main() -> None:
    with TemporaryDirectory() as folder:
        path = written(folder)
        reader = SavepointReader.read(path)
        print(reader.describe())
        for customer, _, total in sorted(reader.read_python("totals", "total")):
            print(customer, total)
        configuration = Configuration()
        configuration.set_string("execution.state-recovery.path", path)
        environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
        environment.configure(configuration)
        payments = environment.from_collection(PAYMENTS).key_by(lambda payment: payment[0])
        with payments.process(Total()).uid("totals").execute_and_collect("totals") as results:
            print(dict(sorted(results)))


if __name__ == "__main__":
    main()
