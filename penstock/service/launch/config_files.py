"""Settings from outside a program: a file, environment variables and the command line, each with its origin.

Later places win: defaults, file, environment, command line. Settings of the program itself win over all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigurationError
from penstock.service.launch.execution_settings import MASTER_VARIABLE
from penstock.service.options.known_options import known_options, new_warnings, same_option

if TYPE_CHECKING:
    from penstock.common.configuration import Configuration

OWN_FILE = "penstock-conf.yaml"
FLINKS_FILES = ("config.yaml", "flink-conf.yaml")
FOLDER_VARIABLES = ("PENSTOCK_CONF_DIR", "FLINK_CONF_DIR")
TEXT_VARIABLES = ("FLINK_PROPERTIES", "PENSTOCK_PROPERTIES")
"""Variables that hold many settings. The last variable wins."""
PREFIX = "PENSTOCK__"
COMMAND_LINE = "command line"
DEFAULT = "default"


@dataclass(frozen=True)
class Setting:
    """An option's name, its value and the origin of the value."""

    name: str
    value: str
    origin: str


class Sourced(Mapping[str, Setting]):
    """Given settings by name. A later place wins, whichever of an option's names each place uses."""

    def __init__(self, *places: Sequence[Setting]) -> None:
        self._settings: dict[str, Setting] = {}
        for place in places:
            for setting in place:
                for name in same_option(setting.name):
                    self._settings.pop(name, None)
            self._settings.update((setting.name, setting) for setting in place)

    def __getitem__(self, name: str) -> Setting:
        return self._settings[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    def find(self, name: str) -> Setting | None:
        """Return the setting of an option under any of its names, else its default, else None."""
        for spelling in same_option(name):
            if spelling in self:
                return self[spelling]
        option = known_options().get(name)
        default = None if option is None else option.initial
        return None if option is None or default is None else Setting(option.name, default, DEFAULT)

    def value(self, name: str) -> str | None:
        """Return the value of an option, else its default, else None."""
        found = self.find(name)
        return None if found is None else found.value

    def with_defaults(self) -> list[Setting]:
        """Return the setting or default of every option that has a value, known or not, sorted by name."""
        names = {*self, *(option.name for option in known_options().values())}
        found = {held.name: held for name in names if (held := self.find(name)) is not None}
        return [found[name] for name in sorted(found)]

    def and_then(self, chosen: Mapping[str, object | None]) -> Sourced:
        """Return these settings and those of command-line switches. A switch whose value is None was not used."""
        given = [Setting(name, str(value), COMMAND_LINE) for name, value in chosen.items() if value is not None]
        return Sourced(list(self.values()), given)

    def configuration(self) -> Configuration:
        """Return the settings without their origins."""
        from penstock.common.configuration import Configuration

        return Configuration.from_dict({name: setting.value for name, setting in self.items()})

    def new_warnings(self) -> list[str]:
        """Return a warning for each name that is unknown or has no effect and was not warned about before."""
        return new_warnings({name: setting.origin for name, setting in self.items()})


def load_configuration(
    options: Sequence[str] = (),
    conf_dir: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Sourced:
    """Read the configuration file, the environment and `options`, which are texts such as `parallelism.default=4`.

    With `conf_dir`, only that folder is searched for the file.
    """
    variables = os.environ if environment is None else environment
    file = _file_in(Path(conf_dir)) if conf_dir is not None else find_file(variables)
    return Sourced(_from_file(file) if file else [], _from_environment(variables), _from_options(options))


# --- the file ---
def find_file(environment: Mapping[str, str]) -> Path | None:
    """Return the configuration file to read: in the folder that a variable names, here, or at home."""
    named = next((environment[name] for name in FOLDER_VARIABLES if environment.get(name)), None)
    if named is not None and (found := _file_in(Path(named))) is not None:
        return found
    # Many programs have a config.yaml of their own in the folder where they run.
    for name in (OWN_FILE, "flink-conf.yaml"):
        if Path(name).is_file():
            return Path(name).absolute()
    home = Path.home() / ".penstock"
    return _file_in(home) if home.is_dir() else None


def _file_in(folder: Path) -> Path | None:
    if not folder.is_dir():
        raise ConfigurationError(f"the configuration folder '{folder}' does not exist")
    return next((folder / name for name in (OWN_FILE, *FLINKS_FILES) if (folder / name).is_file()), None)


def _from_file(path: Path) -> list[Setting]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the configuration {path} cannot be read: {error}") from None
    read = _lines if path.name == "flink-conf.yaml" else _yaml
    return [Setting(name, value, str(path)) for name, value in read(text, str(path))]


def _yaml(text: str, place: str) -> list[tuple[str, str]]:
    """Parse flat or nested YAML. Every value stays a text: 10:30 does not become a number, nor `on` a boolean."""
    import yaml

    try:
        content = yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{place} is not valid YAML: {' '.join(str(error).split())}") from None
    if content in (None, ""):
        return []
    if not isinstance(content, dict):
        raise ConfigurationError(f"{place} must hold a mapping of names to values, not a {type(content).__name__}")
    return _flat(content)


def _flat(content: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            found.extend(_flat(value, f"{name}."))
        elif isinstance(value, list):
            found.append((name, ";".join(map(str, value))))
        elif value != "":
            found.append((name, str(value)))
    return found


def _lines(text: str, place: str) -> list[tuple[str, str]]:
    """Parse Flink 1.x's file: a name, a colon, a blank and a value on every line. The value may hold any character."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        name, separator, value = content.partition(": ")
        if content and not separator and not content.endswith(":"):
            raise ConfigurationError(f"{place}, line {number}: write 'name: value', not '{content}'")
        if value.strip():
            found.append((name.strip(), value.strip()))
    return found


# --- the environment ---
def _from_environment(environment: Mapping[str, str]) -> list[Setting]:
    found: list[Setting] = []
    for variable in TEXT_VARIABLES:
        pairs = _yaml(environment[variable], f"the variable {variable}") if environment.get(variable) else []
        found.extend(Setting(name, value, f"environment {variable}") for name, value in pairs)
    if environment.get(MASTER_VARIABLE):
        found.append(Setting("spark.master", environment[MASTER_VARIABLE], f"environment {MASTER_VARIABLE}"))
    for variable in sorted(environment):
        if variable.startswith(PREFIX):
            found.append(Setting(option_name(variable), environment[variable], f"environment {variable}"))
    return found


def option_name(variable: str) -> str:
    """Return the option that a variable sets. Two underscores mean a dot, one means a hyphen, and case does not matter.

    >>> option_name("PENSTOCK__EXECUTION__CHECKPOINTING__SAVEPOINT_DIR")
    'execution.checkpointing.savepoint-dir'
    """
    written = variable.removeprefix(PREFIX).replace("__", ".").replace("_", "-")
    by_plain = {name.lower(): name for name in known_options()}
    return by_plain.get(written.lower(), written.lower() if written.isupper() else written)


# --- the command line ---
def _from_options(options: Sequence[str]) -> list[Setting]:
    found = []
    for option in options:
        name, separator, value = option.partition("=")
        if not separator or not name.strip():
            raise ConfigurationError(f"-D must be given as name=value, not '{option}'")
        found.append(Setting(name.strip(), value, COMMAND_LINE))
    return found
