"""Real servers on loopback for the tests of the connectors: started on first use, stopped with the test run."""
