"""Groups of operators that may share a slot, with the resources that they need."""

from penstock.api.slot_sharing_group import MemorySize, SlotSharingGroup

__all__ = ["MemorySize", "SlotSharingGroup"]
