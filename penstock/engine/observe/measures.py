"""Everything that a slot counts and measures, and what of it is new since the last report."""

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
"""In place of an operator's uid: the group of metrics that belong to none."""


class Measures:
    """The metrics of users, connectors and the engine in one slot. What did not change is not reported again."""

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
        """What an operator writes into in place of this receiver; `aged` if the age of records is to be told, too."""
        return (
            receiver if self.tallies is None else self.tallies.count_output(node, tag, receiver, aged and tag is None)
        )

    def add_arrivals(self, edge: int, records: int) -> None:
        """Records came over an exchange."""
        if self.tallies is not None:
            self.tallies.arrived[edge] += records

    def latencies(self, node: Node) -> Latencies | None:
        """Where an operator notes the latency markers that come to it; None if there are none."""
        if not self._latency or node.kind == "source":
            return None
        settings, job = self._settings, self.metrics.add_group(OF_THE_JOB)
        return Latencies(job, node.uid, self._index, settings.latency_granularity, settings.latency_history)

    def markers(self, node: Node) -> Markers | None:
        """When a source sends latency markers; None if it sends none."""
        if not self._latency or node.kind != "source":
            return None
        return Markers(node.uid, self._index, self._settings.latency_interval)

    def changes(self) -> dict[str, Any]:
        """The metrics of users and connectors that show something new. A gauge is user code, and may fail."""
        return self.metrics.changes(self._told)

    def new_descriptions(self) -> dict[str, Described]:
        """What all metrics are, if there are new ones since the last call."""
        known, self._described = self._described, len(self.metrics.described)
        return dict(self.metrics.described) if self._described != known else {}

    def operators(self, nodes: Sequence[Node], gates: Mapping[int, Watermarked]) -> dict[str, Told]:
        """The figures of operators that changed. The gates are what is in front of them, by node."""
        return {} if self.tallies is None else self.tallies.changes(nodes, gates)

    def usage(self, tables: Tables) -> dict[str, float | int]:
        """Processor time and memory of this process, and what its database says of itself, every now and then."""
        found = {} if self._usage is None else self._usage.look()
        return {**found, **tables.figures(self._settings.rocksdb)} if found else found
