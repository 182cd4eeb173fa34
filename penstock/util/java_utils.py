"""PyFlink's helpers for Java.

The configuration of an environment works; the other helpers raise an error with advice.
"""

from __future__ import annotations

from typing import Any, NoReturn

from penstock.errors import UnsupportedOperation
from penstock.java_gateway import ADVICE

__all__ = [
    "add_jars_to_context_class_loader",
    "get_field_value",
    "get_j_env_configuration",
    "invoke_method",
    "is_instance_of",
    "load_java_class",
    "to_jarray",
]


def get_j_env_configuration(j_env: Any) -> Any:
    """Return the live configuration of `env._j_stream_execution_environment`. Changes to it change the environment.

    It has the methods of a Configuration, in Python's spelling and in Java's, and `Configuration(j_configuration=…)`
    takes it.
    """
    return j_env.getConfiguration()


def _make_refusal(name: str) -> Any:
    def refuse(*args: Any, **named: Any) -> NoReturn:
        raise UnsupportedOperation(f"{name} does not exist here: {ADVICE}")

    return refuse


add_jars_to_context_class_loader = _make_refusal("add_jars_to_context_class_loader")
get_field_value = _make_refusal("get_field_value")
invoke_method = _make_refusal("invoke_method")
is_instance_of = _make_refusal("is_instance_of")
load_java_class = _make_refusal("load_java_class")
to_jarray = _make_refusal("to_jarray")
