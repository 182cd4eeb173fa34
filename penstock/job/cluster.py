"""The seam between the epoch loop and what runs the slots."""

from __future__ import annotations

from typing import Protocol

from penstock.runtime.protocol import Command, Deployment, Report


class Cluster(Protocol):
    """Hosts the slots of one job."""

    def deploy(self, deployment: Deployment) -> list[Report]:
        """Open every slot; a slot that fails to open says so in its report."""

    def run(self, command: Command) -> list[Report]:
        """Run one epoch through all stages. Raises SlotLost when a slot's process is gone."""

    def release(self) -> list[Report]:
        """Close the slots' functions and let go of their processes. Called once, also after a failure."""

    def interrupt(self) -> None:
        """Stop a running epoch from another thread, as hard as it takes; the job is over then."""
