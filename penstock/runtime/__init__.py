"""What runs inside a slot: operators, timers, watermarks, exchange and the code that drives them."""
