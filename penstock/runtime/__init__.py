"""What runs inside a slot: operators, timers, watermarks, exchange and the task that drives them."""
