"""Messages between the driver and the slots."""
