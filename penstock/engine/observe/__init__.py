"""Observation of slots: activity, metrics, logs and profiles."""
