"""The display of a TableEnvironment: the tables and functions that it knows."""

from __future__ import annotations

from penstock.base.display.html_parts import Heading, grid, head, note, whole


class ShowsCatalog:
    """Displays a table environment: its mode, its current database, and the tables, views and functions there."""

    @property
    def is_batch(self) -> bool:
        raise NotImplementedError

    def get_current_catalog(self) -> str:
        raise NotImplementedError

    def get_current_database(self) -> str:
        raise NotImplementedError

    def list_tables(self) -> list[str]:
        raise NotImplementedError

    def list_views(self) -> list[str]:
        raise NotImplementedError

    def list_user_defined_functions(self) -> list[str]:
        raise NotImplementedError

    def _names(self) -> list[tuple[str, str]]:
        """Return name and kind of everything in the current database. Views are among the tables of a catalog."""
        views = set(self.list_views())
        kinds = [(name, "view" if name in views else "table") for name in self.list_tables()]
        return kinds + [(name, "function") for name in self.list_user_defined_functions()]

    def _facts(self) -> tuple[str, str]:
        mode = "BATCH" if self.is_batch else "STREAMING"
        return mode, f"{self.get_current_catalog()}.{self.get_current_database()}"

    def __repr__(self) -> str:
        mode, place = self._facts()
        names = [f"\n  {kind} {name}" for name, kind in self._names()]
        return f"{type(self).__name__} in {mode} mode, in {place}" + "".join(names)

    def _repr_html_(self) -> str:
        names = [[kind, name] for name, kind in self._names()]
        content = grid([Heading("kind"), Heading("name")], names) if names else note("no tables or functions yet")
        return whole(head(type(self).__name__, *self._facts()), content)
