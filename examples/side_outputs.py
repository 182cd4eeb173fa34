"""Parses lines; those that are no numbers go to a side output instead of failing the job."""

from collections.abc import Iterator
from typing import Any

from penstock.common import Types
from penstock.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment

REJECTED = OutputTag("rejected", Types.STRING())


class Parse(ProcessFunction):
    """A yielded pair of a tag and a value goes to that side output, everything else to the main one."""

    def process_element(self, value: str, ctx: ProcessFunction.Context) -> Iterator[Any]:
        try:
            yield int(value)
        except ValueError:
            yield REJECTED, value


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=1)
    numbers = environment.from_elements("1", "two", "3", "vier").process(Parse(), Types.INT())
    numbers.print("number")
    numbers.get_side_output(REJECTED).print("rejected")
    environment.execute("parse")


if __name__ == "__main__":
    main()
