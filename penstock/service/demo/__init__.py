"""`make demo`: simulated sensors in a job on a server of its own, seen live in the terminal and in the browser."""
