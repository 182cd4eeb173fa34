"""Checkpoints and savepoints as the driver sees them: when they are due, what they hold, which to restore or delete."""
