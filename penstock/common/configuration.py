"""Settings by key. A value keeps its type, and is converted when a program reads it as another type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from penstock.base.arguments import check_arguments
from penstock.base.options.parsers import parse_duration
from penstock.errors import ConfigurationError

__all__ = ["ConfigOption", "ConfigOptions", "Configuration", "parse_duration"]

T = TypeVar("T")
Keys = set[str]  # named here, because Configuration.set hides the builtin in its class


@check_arguments
@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """A key with the type of its values and an optional default."""

    key: str
    value_type: type[T]
    default: T | None = None

    def has_default_value(self) -> bool:
        """Return True if the option has a default value."""
        return self.default is not None


@check_arguments
class ConfigOptions:
    """Makes options.

    >>> RETRIES = ConfigOptions.key("sink.retries").int_type().default_value(3)
    >>> Configuration().get(RETRIES)
    3
    """

    def __init__(self) -> None:
        raise TypeError("use ConfigOptions.key(...)")

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Start an option with this key."""
        return ConfigOptions.OptionBuilder(key)

    @check_arguments
    @dataclass(frozen=True)
    class OptionBuilder:
        """An option whose type is not set yet."""

        key: str

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """Set the type of the values to bool."""
            return ConfigOptions.TypedConfigOptionBuilder(self.key, bool)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Set the type of the values to int."""
            return ConfigOptions.TypedConfigOptionBuilder(self.key, int)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Set the type of the values to int, which has no limit in Python."""
            return ConfigOptions.TypedConfigOptionBuilder(self.key, int)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Set the type of the values to float."""
            return ConfigOptions.TypedConfigOptionBuilder(self.key, float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Set the type of the values to float, which has 64 bits in Python."""
            return ConfigOptions.TypedConfigOptionBuilder(self.key, float)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Set the type of the values to str."""
            return ConfigOptions.TypedConfigOptionBuilder(self.key, str)

    @check_arguments
    @dataclass(frozen=True)
    class TypedConfigOptionBuilder(Generic[T]):
        """An option whose default is not set yet."""

        key: str
        value_type: type[T]

        def default_value(self, value: T) -> ConfigOption[T]:
            """Return the option with this default value."""
            return ConfigOption(self.key, self.value_type, value)

        def no_default_value(self) -> ConfigOption[T]:
            """Return the option without a default value."""
            return ConfigOption(self.key, self.value_type)


@check_arguments
class Configuration:
    """A set of settings.

    >>> Configuration().set_string("parallelism.default", "4").get_integer("parallelism.default", 1)
    4
    """

    def __init__(self, other: Configuration | None = None, j_configuration: Configuration | None = None) -> None:
        """Create a configuration.

        With `j_configuration` from `get_j_env_configuration`, it shares an environment's settings.
        """
        self._values: dict[str, Any] = {} if other is None else dict(other._values)
        self._follow: Callable[[str, Any], None] | None = None
        if j_configuration is not None:
            self._values, self._follow = j_configuration._values, j_configuration._follow

    def follow(self, changed: Callable[[str, Any], None]) -> None:
        """Call `changed(key, value)` for every setting from now on."""
        self._follow = changed

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        """Return a configuration with the settings of a dict."""
        configuration = cls()
        configuration._values.update(map)
        return configuration

    def get(self, option: ConfigOption[T], default_value: T | None = None) -> T | None:
        """Return the value of an option, else the given default, else the option's own default."""
        fallback = option.default if default_value is None else default_value
        return cast("T | None", self._get(option.key, option.value_type, fallback))

    def set(self, option: ConfigOption[T], value: T) -> Configuration:
        """Set the value of an option, converted to the option's type."""
        return self._set(option.key, _convert(option.key, value, option.value_type))

    def get_string(self, key: str, default_value: str) -> str:
        """Return a setting as a string, or the default if it is not set."""
        return cast(str, self._get(key, str, default_value))

    def set_string(self, key: str, value: str) -> Configuration:
        """Set a setting to a string, and return this configuration."""
        return self._set(key, value)

    def get_integer(self, key: str, default_value: int) -> int:
        """Return a setting as an int, or the default if it is not set."""
        return cast(int, self._get(key, int, default_value))

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set a setting to an int, and return this configuration."""
        return self._set(key, value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """Return a setting as a bool, or the default if it is not set."""
        return cast(bool, self._get(key, bool, default_value))

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set a setting to a bool, and return this configuration."""
        return self._set(key, value)

    def get_float(self, key: str, default_value: float) -> float:
        """Return a setting as a float, or the default if it is not set."""
        return cast(float, self._get(key, float, default_value))

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a setting to a float, and return this configuration."""
        return self._set(key, float(value))

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """Return a setting as a bytearray, or the default if it is not set."""
        return cast(bytearray, self._get(key, bytearray, default_value))

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set a setting to a copy of a bytearray, and return this configuration."""
        return self._set(key, bytearray(value))

    def contains_key(self, key: str) -> bool:
        """Return True if there is a setting with this key."""
        return key in self._values

    def key_set(self) -> Keys:
        """Return the keys of all settings."""
        return Keys(self._values)

    def remove_config(self, key: str) -> bool:
        """Remove a setting. Return False if there was none."""
        return self._values.pop(key, None) is not None

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Take over the settings of another configuration, with the prefix before each key."""
        for key, value in other._values.items():
            self._put((prefix or "") + key, value)
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Add all settings to a dict."""
        target_dict.update(self._values)

    def to_dict(self) -> dict[str, str]:
        """Return all settings as text."""
        return {key: _to_text(value) for key, value in self._values.items()}

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        """Return the items of `[a, b]`, of lines that begin with a dash, or of `a;b`."""
        text = value.strip() if value else ""
        if not text:
            return []
        if text.startswith("[") and text.endswith("]"):
            return _items(text[1:-1].split(","))
        lines = text.splitlines()
        if all(line.lstrip().startswith("- ") for line in lines if line.strip()):
            return _items(line.lstrip()[2:] for line in lines)
        return text.split(";")

    def _get(self, key: str, value_type: type, default_value: Any) -> Any:
        value = self._values.get(key)
        return default_value if value is None else _convert(key, value, value_type)

    def _set(self, key: str, value: Any) -> Configuration:
        if not isinstance(key, str):
            raise TypeError(f"a configuration key is a string, not {key!r}")
        if value is None:
            raise ValueError(f"{key} needs a value; use remove_config to remove a setting")
        self._put(key, value)
        return self

    def _put(self, key: str, value: Any) -> None:
        self._values[key] = value
        if self._follow is not None:
            self._follow(key, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values))

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        return Configuration(self)

    def __str__(self) -> str:
        return f"{{{', '.join(f'{key}={value}' for key, value in self.to_dict().items())}}}"

    def __repr__(self) -> str:
        return f"Configuration({self._values})"


def _items(parts: Any) -> list[str]:
    return [part.strip().strip("'\"") for part in parts if part.strip()]


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ";".join(map(_to_text, value))
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    return str(value)


def _to_boolean(value: Any) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ValueError
    return text == "true"


def _to_bytes(value: Any) -> bytearray:
    return bytearray.fromhex(value) if isinstance(value, str) else bytearray(value)


_CONVERSIONS: dict[type, Callable[[Any], Any]] = {str: _to_text, bool: _to_boolean, bytearray: _to_bytes}


def _convert(key: str, value: Any, value_type: type) -> Any:
    if type(value) is value_type:
        return value
    try:
        return _CONVERSIONS.get(value_type, value_type)(value)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{key} is {value!r}, which is not a valid {value_type.__name__}") from None
