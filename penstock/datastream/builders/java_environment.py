"""What stands for the Java environment behind PyFlink's: programs reach through it for options that have no method."""

from __future__ import annotations

from typing import Any

from penstock.base.absent_names import absent_object
from penstock.common.configuration import Configuration
from penstock.java_gateway import ADVICE
from penstock.service.launch.effective_options import effective_options
from penstock.service.launch.execution_settings import EnvironmentSettings


class JavaEnvironment(absent_object):
    """Has a configuration; whatever else is asked of it says what to do instead."""

    def __init__(self, settings: EnvironmentSettings) -> None:
        super().__init__("the Java environment", ADVICE)
        self._settings = settings

    def getConfiguration(self) -> JavaConfiguration:  # noqa: N802
        """The environment's options: a change takes effect at once."""
        return JavaConfiguration(self._settings)


class JavaConfiguration(Configuration):
    """A Configuration that is written through to its environment, with Java's spelling beside Python's."""

    def __init__(self, settings: EnvironmentSettings) -> None:
        super().__init__(effective_options(settings))
        self.follow(lambda key, value: settings.read(Configuration.from_dict({key: value})))

    def __getattr__(self, name: str) -> Any:
        spelled = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        if spelled == name or not hasattr(Configuration, spelled):
            raise AttributeError(f"a configuration has no {name}")
        return getattr(self, spelled)
