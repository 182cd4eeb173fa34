"""The state processor on Spark: savepoints as DataFrames, and back."""
