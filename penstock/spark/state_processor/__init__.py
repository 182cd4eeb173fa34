"""The state processor on Spark, which reads savepoints as DataFrames and writes DataFrames to savepoints."""
