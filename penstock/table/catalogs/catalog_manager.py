"""All catalogs of an environment and its temporary objects: finds a table, a view or a function by its path."""

from __future__ import annotations

from difflib import get_close_matches

from penstock.common.configuration import Configuration
from penstock.errors import ValidationException
from penstock.table.catalogs.memory_catalog import (
    Catalog,
    CatalogBaseTable,
    CatalogDescriptor,
    CatalogFunction,
    ObjectPath,
)
from penstock.util.exceptions import CatalogException, TableAlreadyExistException, TableNotExistException

Path = tuple[str, str, str]
"""Names of a catalog, a database and an object."""


class Catalogs:
    """Catalogs by name. One of them, and one of its databases, is current."""

    def __init__(self, catalog: str, database: str) -> None:
        self._catalogs: dict[str, Catalog] = {catalog: Catalog(database)}
        self._described: dict[str, CatalogDescriptor] = {}
        """Options and comments of CREATE CATALOG."""
        self.current, self.database = catalog, database
        self.temporary: dict[Path, CatalogBaseTable] = {}
        """Tables and views that hide those of the catalogs."""
        self._temporary_functions: dict[Path, CatalogFunction] = {}
        self._system_functions: dict[str, CatalogFunction] = {}

    # --- catalogs and databases ---
    def names(self) -> list[str]:
        """Return the names of catalogs, in order."""
        return sorted(self._catalogs)

    def register(
        self,
        name: str,
        catalog: Catalog,
        ignore_if_exists: bool = False,
        descriptor: CatalogDescriptor | None = None,
    ) -> None:
        """Add a catalog."""
        if name not in self._catalogs:
            self._catalogs[name] = catalog
            if descriptor is not None:
                self._described[name] = descriptor
        elif not ignore_if_exists:
            raise CatalogException(f"a catalog {name} exists already")

    def drop(self, name: str, ignore_if_not_exists: bool = False) -> None:
        """Remove a catalog, which must not be the current one."""
        if name == self.current:
            raise CatalogException(f"catalog {name} is in use; USE another CATALOG first")
        if name not in self._catalogs and not ignore_if_not_exists:
            raise self._no_catalog(name)
        self._catalogs.pop(name, None)
        self._described.pop(name, None)

    def descriptor(self, name: str) -> CatalogDescriptor:
        """Return the options and the comment of a catalog."""
        default = self.catalog(name).get_default_database()
        if name in self._described:
            return self._described[name]
        options = {"type": "generic_in_memory", "default-database": default}
        return CatalogDescriptor(name, Configuration.from_dict(options))

    def describe(self, descriptor: CatalogDescriptor) -> None:
        """Change the options and the comment of a catalog. Its databases stay."""
        self.catalog(descriptor.catalog_name)
        self._described[descriptor.catalog_name] = descriptor

    def get(self, name: str) -> Catalog | None:
        """Return a catalog by its name; None if there is no such catalog."""
        return self._catalogs.get(name)

    def catalog(self, name: str | None = None) -> Catalog:
        """Return a catalog by its name; without a name, the current one."""
        found = self._catalogs.get(name or self.current)
        if found is None:
            raise self._no_catalog(name or self.current)
        return found

    def use(self, name: str) -> None:
        """Make a catalog the current one, with its default database."""
        self.database = self.catalog(name).get_default_database()
        self.current = name

    def use_database(self, path: tuple[str, ...]) -> None:
        """Make a database, and its catalog, the current one."""
        catalog, database = (self.current, path[0]) if len(path) == 1 else path
        self.catalog(catalog).get_database(database)
        self.current, self.database = catalog, database

    def _no_catalog(self, name: str) -> CatalogException:
        return CatalogException(f"there is no catalog {name}; there are: {', '.join(self._catalogs)}")

    # --- paths ---
    def qualify(self, path: tuple[str, ...]) -> Path:
        """Return a path with catalog and database."""
        match path:
            case (name,):
                return self.current, self.database, name
            case (database, name):
                return self.current, database, name
            case (catalog, database, name):
                return catalog, database, name
        raise ValidationException(f"{'.'.join(path)} is not a valid path: write [[catalog.]database.]name")

    # --- tables ---
    def find(self, path: tuple[str, ...]) -> tuple[Path, CatalogBaseTable] | None:
        """Return a table or view, the temporary one first; None if there is none."""
        whole = self.qualify(path)
        temporary = self.temporary.get(whole)
        if temporary is not None:
            return whole, temporary
        catalog = self._catalogs.get(whole[0])
        inside = ObjectPath(whole[1], whole[2])
        if catalog is not None and catalog.table_exists(inside):
            return whole, catalog.get_table(inside)
        return None

    def get_table(self, path: tuple[str, ...]) -> tuple[Path, CatalogBaseTable]:
        """Return a table or view with its full name. Raise TableNotExistException if there is none."""
        found = self.find(path)
        if found is None:
            raise TableNotExistException(f"there is no table or view {'.'.join(path)}{self.suggestion(path[-1])}")
        return found

    def suggestion(self, name: str) -> str:
        """Return a text that suggests a similar name of the current database; empty if there is none."""
        close = get_close_matches(name, self.table_names(), 1)
        return f"; did you mean {close[0]}?" if close else ""

    def create(
        self, path: tuple[str, ...], table: CatalogBaseTable, temporary: bool = False, ignore_if_exists: bool = False
    ) -> None:
        """Add a table or view to its catalog, or as a temporary one to this environment."""
        whole = self.qualify(path)
        if not temporary:
            self.catalog(whole[0]).create_table(ObjectPath(whole[1], whole[2]), table, ignore_if_exists)
        elif whole not in self.temporary:
            self.temporary[whole] = table
        elif not ignore_if_exists:
            raise TableAlreadyExistException(f"a temporary table or view {'.'.join(whole)} exists already")

    def drop_table(
        self, path: tuple[str, ...], view: bool, temporary: bool = False, ignore_if_not_exists: bool = False
    ) -> bool:
        """Drop a table or a view. Return True if there was one."""
        whole, what = self.qualify(path), "view" if view else "table"
        hidden = self.temporary.get(whole)
        if temporary:
            if hidden is not None and hidden.is_view is view:
                del self.temporary[whole]
                return True
            return self._missing(what, path, ignore_if_not_exists)
        if hidden is not None and hidden.is_view is view:
            raise ValidationException(f"there is a temporary {what} {'.'.join(path)}; drop it first: DROP TEMPORARY")
        catalog, inside = self.catalog(whole[0]), ObjectPath(whole[1], whole[2])
        if not catalog.table_exists(inside) or catalog.get_table(inside).is_view is not view:
            return self._missing(what, path, ignore_if_not_exists)
        catalog.drop_table(inside)
        return True

    @staticmethod
    def _missing(what: str, path: tuple[str, ...], ignore: bool) -> bool:
        if ignore:
            return False
        raise TableNotExistException(f"there is no {what} {'.'.join(path)}")

    def table_names(self, catalog: str | None = None, database: str | None = None, views: bool = False) -> list[str]:
        """Return the names of tables and views, or of views alone, of a database."""
        catalog, database = catalog or self.current, database or self.database
        here = self.catalog(catalog)
        names = set(here.list_views(database) if views else here.list_tables(database))
        names |= {
            path[2]
            for path, table in self.temporary.items()
            if path[:2] == (catalog, database) and (table.is_view or not views)
        }
        return sorted(names)

    def is_temporary(self, whole: Path) -> bool:
        """Return True for the full name of a temporary table or view."""
        return whole in self.temporary

    def temporary_names(self, views: bool) -> list[str]:
        """Return the names of temporary tables, or of temporary views, of the current database."""
        here = (self.current, self.database)
        return sorted(path[2] for path, table in self.temporary.items() if path[:2] == here and table.is_view is views)

    # --- functions ---
    def function(self, path: tuple[str, ...]) -> CatalogFunction | None:
        """Return the entry of a user's function; None if there is none. Names ignore case."""
        own = self.system_function(path[0]) if len(path) == 1 else None
        return own or self.catalog_function(path)

    def catalog_function(self, path: tuple[str, ...]) -> CatalogFunction | None:
        """Return the entry of a function that belongs to a database; None if there is none."""
        catalog, database, name = self.qualify(path)
        temporary = self._temporary_functions.get((catalog, database, name.lower()))
        if temporary is not None:
            return temporary
        found, inside = self._catalogs.get(catalog), ObjectPath(database, name)
        return found.get_function(inside) if found is not None and found.function_exists(inside) else None

    def system_function(self, name: str) -> CatalogFunction | None:
        """Return the entry of a function that belongs to no database; None if there is none."""
        return self._system_functions.get(name.lower())

    def is_temporary_function(self, path: tuple[str, ...]) -> bool:
        """Return True if a function of the user belongs to this environment alone."""
        catalog, database, name = self.qualify(path)
        whole = (catalog, database, name.lower())
        return whole in self._temporary_functions or (len(path) == 1 and path[0].lower() in self._system_functions)

    def create_function(
        self, path: tuple[str, ...], function: CatalogFunction, kind: str = "", ignore_if_exists: bool = False
    ) -> None:
        """Create a function. `kind` is "temporary", "system" or empty."""
        catalog, database, name = self.qualify(path)
        if kind == "system":
            if name.lower() in self._system_functions and not ignore_if_exists:
                raise ValidationException(f"a temporary system function {name} exists already")
            self._system_functions.setdefault(name.lower(), function)
        elif kind == "temporary":
            whole = (catalog, database, name.lower())
            if whole in self._temporary_functions and not ignore_if_exists:
                raise ValidationException(f"a temporary function {name} exists already")
            self._temporary_functions.setdefault(whole, function)
        else:
            self.catalog(catalog).create_function(ObjectPath(database, name), function, ignore_if_exists)

    def drop_function(self, path: tuple[str, ...], kind: str = "", ignore_if_not_exists: bool = False) -> bool:
        """Drop a function. Return True if there was one."""
        catalog, database, name = self.qualify(path)
        if kind == "system":
            gone = self._system_functions.pop(name.lower(), None) is not None
        elif kind == "temporary":
            gone = self._temporary_functions.pop((catalog, database, name.lower()), None) is not None
        else:
            inside = ObjectPath(database, name)
            gone = self.catalog(catalog).function_exists(inside)
            if gone:
                self.catalog(catalog).drop_function(inside)
        if not gone and not ignore_if_not_exists:
            raise ValidationException(f"there is no {f'{kind} ' if kind else ''}function {'.'.join(path)}")
        return gone

    def function_names(self, catalog: str | None = None, database: str | None = None) -> list[str]:
        """Return the names of users' functions: those without a database, and those of one, by default the current."""
        here = (catalog or self.current, database or self.database)
        own = self.catalog(here[0]).list_functions(here[1])
        temporary = {path[2] for path in self._temporary_functions if path[:2] == here}
        return sorted([*{*own, *temporary}, *self._system_functions])
