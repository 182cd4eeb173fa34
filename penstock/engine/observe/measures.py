"""All counts and measurements of a slot, and the changes since the last report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.engine.messages.commands_and_reports import MeasuringSettings
from penstock.engine.observe.slot_activity import Activity
from penstock.engine.observe.tallies import Tallies, Told, Watermarked
from penstock.engine.records.elements import Receiver
from penstock.engine.records.latency import Latencies, Markers
from penstock.engine.state.tables import Tables
from penstock.graph.plan import Node, Plan
from penstock.metrics import MetricGroup
from penstock.metrics.metric import Described
from penstock.metrics.process_metrics import Usage

OF_THE_JOB = ""
"""Stands for the uid of an operator in the group of metrics that belong to none."""


class Measures:
    """The metrics of users, connectors and the engine in one slot. Unchanged metrics are not reported again."""

    def __init__(self, plan: Plan, index: int, settings: MeasuringSettings) -> None:
        self._index = index
        self._settings = settings
        self._latency = settings.latency_interval > 0 and not plan.batch
        self.metrics = MetricGroup()
        self.activity = Activity(plan, index)
        self.tallies = Tallies(plan) if settings.enabled else None
        self._usage = Usage() if settings.enabled else None
        self._told: dict[str, Any] = {}
        self._described = 0

    def count_output(self, node: Node, tag: str | None, receiver: Receiver, aged: bool) -> Receiver:
        """Return a receiver that counts the records and passes them to the given one.

        With `aged`, it also remembers the event time of records, so that their age can be measured.
        """
        return (
            receiver if self.tallies is None else self.tallies.count_output(node, tag, receiver, aged and tag is None)
        )

    def add_arrivals(self, edge: int, records: int) -> None:
        """Count records that came over an exchange."""
        if self.tallies is not None:
            self.tallies.arrived[edge] += records

    def latencies(self, node: Node) -> Latencies | None:
        """Return the histograms for the latency markers of an operator, or None if it records none."""
        if not self._latency or node.kind == "source":
            return None
        settings, job = self._settings, self.metrics.add_group(OF_THE_JOB)
        return Latencies(job, node.uid, self._index, settings.latency_granularity, settings.latency_history)

    def markers(self, node: Node) -> Markers | None:
        """Return the schedule of latency markers of a source, or None if it sends none."""
        if not self._latency or node.kind != "source":
            return None
        return Markers(node.uid, self._index, self._settings.latency_interval)

    def changes(self) -> dict[str, Any]:
        """Return the changed metrics of users and connectors. A gauge is user code, and may fail."""
        return self.metrics.changes(self._told)

    def new_descriptions(self) -> dict[str, Described]:
        """Return the descriptions of all metrics if there are new ones since the last call."""
        known, self._described = self._described, len(self.metrics.described)
        return dict(self.metrics.described) if self._described != known else {}

    def operators(self, nodes: Sequence[Node], gates: Mapping[int, Watermarked]) -> dict[str, Told]:
        """Return the changed figures of operators. `gates` are the gates in front of them, by node."""
        return {} if self.tallies is None else self.tallies.changes(nodes, gates)

    def usage(self, tables: Tables) -> dict[str, float | int]:
        """Return, every now and then, processor time and memory of this process, and the figures of its database."""
        found = {} if self._usage is None else self._usage.look()
        return {**found, **tables.figures(self._settings.rocksdb)} if found else found
