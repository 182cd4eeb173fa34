"""ModuleEntry: functions come from one module, core."""

from dataclasses import dataclass

__all__ = ["ModuleEntry"]


@dataclass(frozen=True)
class ModuleEntry:
    """A module by its name, and whether it is used."""

    _name: str
    _used: bool

    def name(self) -> str:
        return self._name

    def used(self) -> bool:
        return self._used
