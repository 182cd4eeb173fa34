"""The demo of `make demo`: simulated sensors in a job on its own server, shown in the terminal and the browser."""
