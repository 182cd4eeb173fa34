"""ALTER TABLE, VIEW, FUNCTION, DATABASE and CATALOG."""

from __future__ import annotations

from penstock.table.sql.parse import statements as st
from penstock.table.sql.parse.table_parser import Elements, TableParser


class AlterParser(TableParser):
    """Parses changes of existing objects."""

    def alter(self) -> st.Statement:
        """Parse an ALTER statement."""
        self.expect("ALTER")
        temporary = self.accept("TEMPORARY")
        system = temporary and self.accept("SYSTEM")
        kind = self.expect_any("TABLE", "VIEW", "FUNCTION", "DATABASE", "CATALOG")
        exists = self.accept("IF", "EXISTS")
        path = self.path()
        return st.Alter(kind, path, self._change(kind), exists, temporary, system)

    def _change(self, kind: str) -> st.Change:
        if kind == "FUNCTION":
            self.expect("AS")
            return st.SetTarget(*self.target())
        if kind == "VIEW" and self.accept("AS"):
            start = self.index
            query = self.query()
            return st.SetQuery(query, self.text_since(start))
        if kind == "CATALOG" and self.accept("COMMENT"):
            return st.SetComment(self.string())
        if kind in {"TABLE", "VIEW"} and self.accept("RENAME"):
            return self._rename()
        if kind == "TABLE" and self.sees_any("ADD", "MODIFY", "DROP"):
            return self._change_parts()
        return self._change_options(kind)

    def _change_options(self, kind: str) -> st.Change:
        if kind != "VIEW" and self.accept("SET"):
            return st.SetOptions(self.options())
        if kind != "VIEW" and self.accept("RESET"):
            return st.ResetOptions(self._keys())
        return self.fail()

    def _keys(self) -> tuple[str, ...]:
        self.expect_symbol("(")
        keys = [self.string()]
        while self.accept_symbol(","):
            keys.append(self.string())
        self.expect_symbol(")")
        return tuple(keys)

    def _rename(self) -> st.Change:
        if self.accept("TO"):
            return st.RenameTo(self.path())
        column = self.name()
        self.expect("TO")
        return st.RenameColumn(column, self.name())

    def _change_parts(self) -> st.Change:
        verb = self.expect_any("ADD", "MODIFY", "DROP")
        if verb == "DROP":
            return self._drop_parts()
        if self.sees_symbol("("):
            elements = self.elements()
        else:
            elements = Elements()
            self.accept("COLUMN")
            self.element(elements)
        return st.ChangeSchema(verb, tuple(elements.columns), elements.watermark, elements.primary_key)

    def _drop_parts(self) -> st.Change:
        if self.accept("WATERMARK"):
            return st.DropParts("WATERMARK")
        if self.accept("PRIMARY", "KEY"):
            return st.DropParts("PRIMARY KEY")
        if self.accept("CONSTRAINT"):
            return st.DropParts("CONSTRAINT", (self.name(),))
        self.accept("COLUMN")
        return st.DropParts("COLUMN", self.names() if self.sees_symbol("(") else (self.name(),))
