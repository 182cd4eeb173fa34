"""The names of PyFlink's source that reads several sources in turn. They can be imported, but not used yet."""

from penstock.base.absent_names import absent

_ADVICE = "read the sources one after the other in two jobs, or at once with union(...)"

HybridSource = absent("HybridSource", _ADVICE)
HybridSourceBuilder = absent("HybridSourceBuilder", _ADVICE)

__all__ = ["HybridSource", "HybridSourceBuilder"]
