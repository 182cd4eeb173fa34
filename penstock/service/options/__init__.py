"""The options of a job and of the service: a module `*_options.py` for each layer that reads some, and all of them."""
