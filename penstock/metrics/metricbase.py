"""Metrics, under the name of PyFlink's module."""

from penstock.metrics import Counter, Distribution, Gauge, Histogram, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Gauge", "Histogram", "Meter", "Metric", "MetricGroup"]
