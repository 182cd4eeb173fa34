"""Reports the highest of a sensor's last four readings whenever it has moved by more than five degrees."""

from collections.abc import Iterable, Iterator

from penstock.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from penstock.datastream.window import CountEvictor, DeltaTrigger, GlobalWindow, GlobalWindows

READINGS = [("oven", degrees) for degrees in (20, 22, 27, 29, 90, 180, 183, 181, 184, 150)]


def distance(before: tuple[str, int], now: tuple[str, int]) -> int:
    return abs(now[1] - before[1])


class Highest(ProcessWindowFunction):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[GlobalWindow], elements: Iterable[tuple[str, int]]
    ) -> Iterator[str]:
        degrees = [reading[1] for reading in elements]
        yield f"{key} {max(degrees)} of {degrees}"


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=1)
    (
        environment.from_collection(READINGS)
        .key_by(lambda reading: reading[0])
        .window(GlobalWindows.create())  # one window for everything: the trigger says when, the evictor what
        .trigger(DeltaTrigger.of(5, distance))
        .evictor(CountEvictor.of(4))
        .process(Highest())
        .print()
    )
    environment.execute("top readings")


if __name__ == "__main__":
    main()
