"""The two ways to reach Spark: a SparkContext in this process, or Spark Connect."""
