"""The two connections to Spark: a SparkContext in this process, or Spark Connect."""
