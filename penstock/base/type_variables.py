"""The type variables of the public generic classes.

Each has a default, so that a program may write `DataStream` or `MapFunction` without parameters, as it does in PyFlink.
Only type checkers know the defaults: Python has them from version 3.13 on, and nothing is imported for them here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    from penstock.api.windows.windows import Window  # noqa: F401 - a bound, which is written as a string
    from penstock.datastream.builders.joined_streams import MatchWindow  # noqa: F401 - the same

else:
    import typing

    def TypeVar(name, *, default=None, **variance):  # noqa: N802
        """Return a type variable without its default."""
        return typing.TypeVar(name, **variance)

    def ParamSpec(name, *, default=None):  # noqa: N802
        """Return the variable for the parameters of a function, without its default."""
        return typing.ParamSpec(name)


T = TypeVar("T", default=Any)
U = TypeVar("U", default=Any)
A = TypeVar("A", default=Any)
B = TypeVar("B", default=Any)
C = TypeVar("C", default=Any)
D = TypeVar("D", default=Any)
K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)
P = ParamSpec("P", default=...)
"""The parameters of a function."""
R = TypeVar("R", default=Any)
"""The type of a result."""
S = TypeVar("S", default=Any)
"""The type of a state."""
M = TypeVar("M", bound="MatchWindow", default=Any)
"""The kind of a join: of pairs or of groups."""
ACC = TypeVar("ACC", default=Any)
"""The type of an accumulator."""

# What a stream or a result gives out.
T_co = TypeVar("T_co", covariant=True, default=Any)
K_co = TypeVar("K_co", covariant=True, default=Any)
OUT = TypeVar("OUT", covariant=True, default=Any)
NOTHING = TypeVar("NOTHING", covariant=True, default=None)
"""Type that a value state returns for a key without a value: None, or Never if the state has a default."""

# What a function takes.
IN = TypeVar("IN", contravariant=True, default=Any)
IN1 = TypeVar("IN1", contravariant=True, default=Any)
IN2 = TypeVar("IN2", contravariant=True, default=Any)
KEY = TypeVar("KEY", contravariant=True, default=Any)

# Kinds of windows.
W = TypeVar("W", bound="Window", default=Any)
W_in = TypeVar("W_in", bound="Window", contravariant=True, default=Any)
W_co = TypeVar("W_co", bound="Window", covariant=True, default=Any)


class Unknown:
    """The class of no value. Type checkers match it only with results of which they know nothing."""
