"""Counts the words of a few lines: the smallest complete program."""

from penstock.common import Types
from penstock.datastream import StreamExecutionEnvironment

LINES = ["to be or not to be", "that is the question"]


def main() -> None:
    environment = StreamExecutionEnvironment.create_local_environment(parallelism=2)
    counts = (
        environment.from_collection(LINES)
        .flat_map(str.split)
        .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(0)
        .sum(1)
    )
    with counts.execute_and_collect("word count") as results:
        totals = dict(results)  # every word comes with each new count; the last one stays
    for word, count in sorted(totals.items()):
        print(word, count)


if __name__ == "__main__":
    main()
