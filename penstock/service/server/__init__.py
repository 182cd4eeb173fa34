"""The session server: a register of jobs, a driver process for each of them, and one leader among several servers."""
