"""Scope formats, which define the text of system scopes of metrics, after `metrics.scope.*`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["FORMAT_OPTIONS", "ScopeFormats"]

_SEPARATOR = "."
"""Separator of the parts of a format. The delimiter of the resulting scope may be another one."""
_INHERIT = "*"
"""First part of a format that stands for the format of the surrounding scope."""

FORMAT_OPTIONS = {
    "jm": ("metrics.scope.jm", "<host>.jobmanager"),
    "jm_job": ("metrics.scope.jm-job", "<host>.jobmanager.<job_name>"),
    "tm": ("metrics.scope.tm", "<host>.taskmanager.<tm_id>"),
    "tm_job": ("metrics.scope.tm-job", "<host>.taskmanager.<tm_id>.<job_name>"),
    "task": ("metrics.scope.task", "<host>.taskmanager.<tm_id>.<job_name>.<task_name>.<subtask_index>"),
    "operator": ("metrics.scope.operator", "<host>.taskmanager.<tm_id>.<job_name>.<operator_name>.<subtask_index>"),
}
"""Options for the formats, and Flink's defaults, by scope."""
EARLIER_NAMES = {"metrics.scope.jm-job": "metrics.scope.jm.job", "metrics.scope.tm-job": "metrics.scope.tm.job"}
_AROUND = {"jm_job": "jm", "tm_job": "tm", "task": "tm_job", "operator": "task"}
DELIMITER_OPTION = "metrics.scope.delimiter"


@dataclass(frozen=True)
class ScopeFormats:
    """The format of every system scope, in parts; a part `<name>` stands for the variable with that name.

    >>> options = {"metrics.scope.jm": "flink.<host>", "metrics.scope.jm-job": "*.<job_name>"}
    >>> formats = ScopeFormats.from_configuration(options)
    >>> formats.scope_parts("jm_job", {"<host>": "server1", "<job_name>": "orders"})
    ('flink', 'server1', 'orders')
    """

    parts: Mapping[str, tuple[str, ...]]
    delimiter: str = "."

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, str]) -> ScopeFormats:
        """Return the formats that a configuration sets, with Flink's defaults for the others."""
        parts: dict[str, tuple[str, ...]] = {}
        for scope, (option, default) in FORMAT_OPTIONS.items():
            text = configuration.get(option) or configuration.get(EARLIER_NAMES.get(option, ""), "") or default
            first, *rest = text.split(_SEPARATOR)
            around = parts.get(_AROUND.get(scope, ""), ())
            parts[scope] = (*around, *rest) if first == _INHERIT else (first, *rest)
        return cls(parts, configuration.get(DELIMITER_OPTION) or ".")

    def scope_parts(self, scope: str, variables: Mapping[str, str]) -> tuple[str, ...]:
        """Return the parts of a scope with values in place of variables. Variables without a value stay as they are."""
        return tuple(variables.get(part, part) for part in self.parts[scope])

    def full_name(self, scope: tuple[str, ...], name: str) -> str:
        """Return a full name: the parts of a scope and the metric's name, joined by the delimiter."""
        return self.delimiter.join((*scope, name))
