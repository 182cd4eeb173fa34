"""The operators of DataSet programs. They run in BATCH mode, on Spark's shuffle, and sort on disk if they must."""
