"""The engine: operators in slots, what they exchange, their state, checkpoints, and the driver. Knows no Spark."""
