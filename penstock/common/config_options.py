"""Options, under the name of PyFlink's module."""

from penstock.common.configuration import ConfigOption, ConfigOptions

__all__ = ["ConfigOption", "ConfigOptions"]
