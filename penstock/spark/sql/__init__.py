"""Runs a BATCH query on Spark SQL: the optimised plan becomes a DataFrame.

Spark SQL computes the parts to which Spark gives the same meaning. Our own operators compute all other parts over the
batches of a DataFrame's partitions. The results are Flink's, whichever of the two computes a part.
"""
