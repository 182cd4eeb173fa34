"""Options of the configuration: their one kind, and the parsers of their texts. Each layer has a list of its own."""
