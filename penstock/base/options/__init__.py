"""The class of all options of the configuration, and the parsers of their texts. Each layer lists its own options."""
