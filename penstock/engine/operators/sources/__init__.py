"""Sources inside a slot: readers, their splits and watermarks, and the threads that wait for input."""
