"""PySpark: files read, or read and written again, on a local Spark of two slots, with the schema given.

The jobs: `count` lets Spark pass over all columns, `read` decodes them into a sink that keeps nothing, `copy` writes
them; none of these shows a row to Python. `read_rows` and `copy_rows` do, one row after the other.
"""

import files_jobs as f
from pyspark.sql import SparkSession
from workloads import PARALLELISM

SCHEMA = "id long, key long, value double, text string"


def session():
    builder = SparkSession.builder.master(f"local[{PARALLELISM}]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def same(row):
    return row


def through_python(spark, frame):
    return spark.createDataFrame(frame.rdd.map(same), SCHEMA, verifySchema=False)


def run(job, format, path, output):
    spark = SparkSession.getActiveSession()
    frame = spark.read.schema(SCHEMA).format(format).load(path)
    if job == "count":
        frame.count()
    elif job == "read":
        frame.write.format("noop").mode("overwrite").save()
    elif job == "read_rows":
        frame.rdd.map(same).count()
    elif job == "copy":
        frame.write.format(format).save(output)
    else:
        through_python(spark, frame).write.format(format).save(output)


if __name__ == "__main__":
    session()
    f.main(run)
