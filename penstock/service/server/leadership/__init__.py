"""Leader election among servers, and the way of requests from the other servers to the leader."""
