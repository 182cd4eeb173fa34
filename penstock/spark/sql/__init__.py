"""Runs a BATCH query on Spark SQL: the optimised plan becomes a DataFrame.

What Spark means the same by is said in its own words; everything else is our own operator over the batches of a
DataFrame's partitions. So the results are Flink's, whichever of the two computes a part.
"""
