"""The names of PyFlink's source that reads one after another. They can be imported; there is no such source yet."""

from penstock.absent import absent

_ADVICE = "read the sources one after the other in two jobs, or at once with union(...)"

HybridSource = absent("HybridSource", _ADVICE)
HybridSourceBuilder = absent("HybridSourceBuilder", _ADVICE)

__all__ = ["HybridSource", "HybridSourceBuilder"]
