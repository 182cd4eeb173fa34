"""Groups of operators that may share a slot, and the resources that they need."""

from __future__ import annotations

from functools import total_ordering

from penstock.api.settings.values import Settings, at_least, instance_of
from penstock.base.arguments import check_arguments


@check_arguments
@total_ordering
class MemorySize:
    """A number of bytes.

    >>> MemorySize.of_mebi_bytes(2).get_kibi_bytes()
    2048
    """

    __slots__ = ("_bytes",)

    def __init__(self, bytes_size: int) -> None:
        self._bytes = at_least("bytes_size", bytes_size, 0)

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """Return the size of a number of mebibytes."""
        return MemorySize(at_least("mebi_bytes", mebi_bytes, 0) << 20)

    def get_bytes(self) -> int:
        """Return the number of bytes."""
        return self._bytes

    def get_kibi_bytes(self) -> int:
        """Return the whole kibibytes, rounded down."""
        return self._bytes >> 10

    def get_mebi_bytes(self) -> int:
        """Return the whole mebibytes, rounded down."""
        return self._bytes >> 20

    def get_gibi_bytes(self) -> int:
        """Return the whole gibibytes, rounded down."""
        return self._bytes >> 30

    def get_tebi_bytes(self) -> int:
        """Return the whole tebibytes, rounded down."""
        return self._bytes >> 40

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemorySize) and self._bytes == other._bytes

    def __lt__(self, other: MemorySize) -> bool:
        return self._bytes < other._bytes if isinstance(other, MemorySize) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __repr__(self) -> str:
        return f"MemorySize({self._bytes})"

    def __str__(self) -> str:
        return f"{self._bytes} bytes"


@check_arguments
class SlotSharingGroup(Settings):
    """A named group of operators whose subtasks may share slots. Without resources, every slot is suitable."""

    def __init__(
        self,
        name: str,
        *,
        cpu_cores: float | None = None,
        task_heap_memory: MemorySize | None = None,
        task_off_heap_memory: MemorySize | None = None,
        managed_memory: MemorySize | None = None,
        external_resources: dict[str, float] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of a slot sharing group must be a string that is not empty, not {name!r}")
        self._name = name
        self._cpu_cores = cpu_cores
        self._task_heap_memory = task_heap_memory
        self._task_off_heap_memory = task_off_heap_memory
        self._managed_memory = managed_memory
        self._external_resources = dict(external_resources or {})

    def get_name(self) -> str:
        """Return the name."""
        return self._name

    def get_cpu_cores(self) -> float | None:
        """Return the requested cores, or None if every slot is suitable."""
        return self._cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        """Return the requested heap memory, or None if every slot is suitable."""
        return self._task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Return the requested off-heap memory, or None if none was requested."""
        return self._task_off_heap_memory

    def get_managed_memory(self) -> MemorySize | None:
        """Return the requested managed memory, or None if none was requested."""
        return self._managed_memory

    def get_external_resources(self) -> dict[str, float]:
        """Return the amounts of other resources, by name."""
        return dict(self._external_resources)

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Return a builder for a group with the given name."""
        return SlotSharingGroup.Builder(name)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self._name)

    @check_arguments
    class Builder:
        """Collects the resources of one group: either no resources, or cores and heap memory and optional others."""

        def __init__(self, name: str) -> None:
            self._name = name
            self._cpu_cores: float | None = None
            self._memory: dict[str, MemorySize] = {}
            self._external_resources: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """Request a number of cores."""
            if not cpu_cores > 0:
                raise ValueError(f"cpu_cores must be positive, not {cpu_cores}")
            self._cpu_cores = float(cpu_cores)
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Request heap memory."""
            if instance_of("task_heap_memory", task_heap_memory, MemorySize).get_bytes() == 0:
                raise ValueError("task_heap_memory must be positive")
            self._memory["task_heap_memory"] = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Request heap memory, in mebibytes."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Request off-heap memory."""
            self._memory["task_off_heap_memory"] = instance_of("task_off_heap_memory", task_off_heap_memory, MemorySize)
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Request off-heap memory, in mebibytes."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Request managed memory."""
            self._memory["managed_memory"] = instance_of("managed_memory", managed_memory, MemorySize)
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Request managed memory, in mebibytes."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """Request an amount of another resource, such as a GPU."""
            if not value > 0:
                raise ValueError(f"the amount of external resource {name!r} must be positive, not {value}")
            self._external_resources[name] = float(value)
            return self

        def build(self) -> SlotSharingGroup:
            """Return the group. A group with any resource must have cores and heap memory."""
            if not (self._cpu_cores or self._memory or self._external_resources):
                return SlotSharingGroup(self._name)
            if self._cpu_cores is None or "task_heap_memory" not in self._memory:
                raise ValueError(
                    f"slot sharing group {self._name!r} asks for resources: it needs cpu_cores and task_heap_memory"
                )
            nothing = MemorySize(0)
            return SlotSharingGroup(
                self._name,
                cpu_cores=self._cpu_cores,
                external_resources=self._external_resources,
                **{"task_off_heap_memory": nothing, "managed_memory": nothing, **self._memory},
            )
