"""A stand-in for PyFlink's Java environment, through which programs set options that have no method."""

from __future__ import annotations

from typing import Any

from penstock.base.absent_names import absent_object
from penstock.common.configuration import Configuration
from penstock.java_gateway import ADVICE
from penstock.service.launch.effective_options import effective_options
from penstock.service.launch.execution_settings import EnvironmentSettings


class JavaEnvironment(absent_object):
    """Has a configuration. Access to any other attribute raises an error with advice."""

    def __init__(self, settings: EnvironmentSettings) -> None:
        super().__init__("the Java environment", ADVICE)
        self._settings = settings

    def getConfiguration(self) -> JavaConfiguration:  # noqa: N802
        """Return the environment's options. A change takes effect at once."""
        return JavaConfiguration(self._settings)


class JavaConfiguration(Configuration):
    """A Configuration that writes changes through to its environment, with Java's spelling besides Python's."""

    def __init__(self, settings: EnvironmentSettings) -> None:
        super().__init__(effective_options(settings))
        self.follow(lambda key, value: settings.read(Configuration.from_dict({key: value})))

    def __getattr__(self, name: str) -> Any:
        spelled = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        if spelled == name or not hasattr(Configuration, spelled):
            raise AttributeError(f"a configuration has no {name}")
        return getattr(self, spelled)
