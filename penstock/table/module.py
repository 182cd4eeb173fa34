"""Modules of functions, under the name of PyFlink's module."""

from penstock.table.catalogs.function_modules import Module, ModuleEntry, Modules

__all__ = [
    "Module",
    "ModuleEntry",
    "Modules",
]
