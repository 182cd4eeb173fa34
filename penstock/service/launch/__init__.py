"""From a program to a running job: options, settings, Python dependencies, and the submission."""
