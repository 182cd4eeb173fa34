"""The paths of the REST interface, by subject."""
