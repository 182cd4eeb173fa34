"""Reads a batch Spark DataFrame as a stream of rows and keeps a running maximum for each city."""

from typing import Any

from pyspark.sql import SparkSession

from penstock.datastream import StreamExecutionEnvironment

MEASURED = [("Oslo", 4.5), ("Rome", 17.0), ("Oslo", 6.0), ("Rome", 15.5)]


def spark_session() -> SparkSession:
    """A session of one's own: with a thread for each of two slots, and one to read the frame."""
    return SparkSession.builder.master("local[3]").config("spark.ui.showConsoleProgress", "false").getOrCreate()


def warmest(frame: Any) -> dict[str, float]:
    """The highest temperature by city; `frame` has the columns city and degrees."""
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.set_parallelism(2)
    highest = environment.from_spark(frame).key_by("city").max("degrees")
    with highest.execute_and_collect("warmest") as results:
        return {row.city: row.degrees for row in results}


def main() -> None:
    frame = spark_session().createDataFrame(MEASURED, ["city", "degrees"])
    for city, degrees in sorted(warmest(frame).items()):
        print(city, degrees)


if __name__ == "__main__":
    main()
