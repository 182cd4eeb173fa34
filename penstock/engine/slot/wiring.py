"""The connections of a slot's operators: the gates in front of them, and the channels and writers behind them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

from penstock.api.functions.key_selectors import ColumnKeys
from penstock.engine.exchange.writer_choice import writer_for
from penstock.engine.exchange.writers import KeyCheck, Owner, Writer
from penstock.engine.messages.commands_and_reports import Deployment
from penstock.engine.observe.slot_activity import Activity, Counted
from penstock.engine.operators.operator import Channel, Fitting, Gate, Operator
from penstock.engine.records.elements import ControlOnly, Receiver
from penstock.graph.partitioning import ByKey
from penstock.graph.plan import Edge, Node

Address = tuple[int, int]
"""The sender of a channel: (edge, upstream subtask)."""


class Wiring:
    """Connects the operators of one slot, downstream first: an operator needs the channels of those behind it."""

    def __init__(
        self, index: int, deployment: Deployment, operators: Mapping[int, Operator], activity: Activity
    ) -> None:
        """`operators` are those that the slot has opened so far, by node; the slot adds to them."""
        self._index = index
        self._plan = deployment.plan
        self._partitionings = deployment.partitionings
        self._operators = operators
        self._activity = activity
        self.gates: dict[int, Gate] = {}
        """Gates by node. A source has none."""
        self.channels: dict[Address, Channel] = {}
        self.writers: dict[int, Writer] = {}
        """Writers by edge, for edges that leave the slot or the stage."""

    def open_gate(self, node: Node, operator: Operator) -> None:
        """Create the gate in front of an operator, with a channel from every connected sender."""
        gate = self.gates[node.id] = Gate(operator)
        for edge in self._plan.incoming[node.id]:
            for sender in range(self._plan.nodes[edge.source].parallelism):
                if self._index in edge.connects(self._plan, sender):
                    self.channels[edge.id, sender] = gate.channel(edge.input_index)

    def outputs(self, node: Node, operator: Operator) -> dict[str | None, list[Receiver]]:
        """Return the receivers of an operator by tag.

        A side output carries the watermarks and the end of the main output, through its own edge.
        """
        outputs: dict[str | None, list[Receiver]] = {}
        for edge in self._plan.outgoing[node.id]:
            receiver = self._receiver(node, edge)
            if operator.output_type is not None and edge.tag is None and self._leaves_chain(node, edge):
                receiver = Fitting(operator, receiver)
            outputs.setdefault(edge.tag, []).append(receiver)
            if edge.tag is not None:
                outputs.setdefault(None, []).append(ControlOnly(receiver))
        return outputs

    def _leaves_chain(self, node: Node, edge: Edge) -> bool:
        """Return True where PyFlink would pass a record to Java.

        Between two functions of a chain a record stays as it is.
        """
        target = self._plan.nodes[edge.target]
        if node.kind == "source" or target.chain != node.chain:
            return True
        return self._operators[target.id].wants_declared_form

    def _receiver(self, node: Node, edge: Edge) -> Receiver:
        partitioning = pickle.loads(self._partitionings[edge.id])
        if edge.local:
            channel = self.channels[edge.id, self._index]
            target = self._plan.nodes[edge.target]
            receiver: Receiver = channel
            if target.chain != node.chain:
                receiver = Counted(channel, self._activity.sent[node.chain], self._activity.received[target.chain])
            if isinstance(partitioning, ByKey) and not isinstance(partitioning.selector, ColumnKeys):
                return KeyCheck(Owner(f"key_by of {target.name}", target.uid), receiver, partitioning.selector)
            return receiver
        writer = self.writers[edge.id] = writer_for(self._plan, self._index, edge, partitioning)
        self._activity.add_writer(node.chain, writer)
        return writer
