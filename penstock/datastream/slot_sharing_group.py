"""Groups of operators that may share a slot, and the resources they ask for."""

from penstock.api.slot_sharing_group import MemorySize, SlotSharingGroup

__all__ = ["MemorySize", "SlotSharingGroup"]
