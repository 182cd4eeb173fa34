"""The job-wide notion of time of Flink 1.x programs."""

from penstock.api.time_characteristic import TimeCharacteristic

__all__ = ["TimeCharacteristic"]
