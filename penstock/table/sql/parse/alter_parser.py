"""ALTER TABLE, VIEW, FUNCTION, DATABASE and CATALOG."""

from __future__ import annotations

from penstock.table.sql.parse import statements as st
from penstock.table.sql.parse.cursor import Cursor
from penstock.table.sql.parse.query_parser import read_query
from penstock.table.sql.parse.table_parser import Elements, read_element, read_elements, read_options, read_target


def read_alter(cursor: Cursor) -> st.Statement:
    """Parse an ALTER statement."""
    cursor.expect("ALTER")
    temporary = cursor.accept("TEMPORARY")
    system = temporary and cursor.accept("SYSTEM")
    kind = cursor.expect_any("TABLE", "VIEW", "FUNCTION", "DATABASE", "CATALOG")
    exists = cursor.accept("IF", "EXISTS")
    path = cursor.path()
    return st.Alter(kind, path, _read_change(cursor, kind), exists, temporary, system)


def _read_change(cursor: Cursor, kind: str) -> st.Change:
    if kind == "FUNCTION":
        cursor.expect("AS")
        return st.SetTarget(*read_target(cursor))
    if kind == "VIEW" and cursor.accept("AS"):
        start = cursor.index
        query = read_query(cursor)
        return st.SetQuery(query, cursor.text_since(start))
    if kind == "CATALOG" and cursor.accept("COMMENT"):
        return st.SetComment(cursor.string())
    if kind in {"TABLE", "VIEW"} and cursor.accept("RENAME"):
        return _read_rename(cursor)
    if kind == "TABLE" and cursor.sees_any("ADD", "MODIFY", "DROP"):
        return _read_change_parts(cursor)
    return _read_change_options(cursor, kind)


def _read_change_options(cursor: Cursor, kind: str) -> st.Change:
    if kind != "VIEW" and cursor.accept("SET"):
        return st.SetOptions(read_options(cursor))
    if kind != "VIEW" and cursor.accept("RESET"):
        return st.ResetOptions(_read_keys(cursor))
    return cursor.fail()


def _read_keys(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect_symbol("(")
    keys = [cursor.string()]
    while cursor.accept_symbol(","):
        keys.append(cursor.string())
    cursor.expect_symbol(")")
    return tuple(keys)


def _read_rename(cursor: Cursor) -> st.Change:
    if cursor.accept("TO"):
        return st.RenameTo(cursor.path())
    column = cursor.name()
    cursor.expect("TO")
    return st.RenameColumn(column, cursor.name())


def _read_change_parts(cursor: Cursor) -> st.Change:
    verb = cursor.expect_any("ADD", "MODIFY", "DROP")
    if verb == "DROP":
        return _read_drop_parts(cursor)
    if cursor.sees_symbol("("):
        elements = read_elements(cursor)
    else:
        elements = Elements()
        cursor.accept("COLUMN")
        read_element(cursor, elements)
    return st.ChangeSchema(verb, tuple(elements.columns), elements.watermark, elements.primary_key)


def _read_drop_parts(cursor: Cursor) -> st.Change:
    if cursor.accept("WATERMARK"):
        return st.DropParts("WATERMARK")
    if cursor.accept("PRIMARY", "KEY"):
        return st.DropParts("PRIMARY KEY")
    if cursor.accept("CONSTRAINT"):
        return st.DropParts("CONSTRAINT", (cursor.name(),))
    cursor.accept("COLUMN")
    return st.DropParts("COLUMN", cursor.names() if cursor.sees_symbol("(") else (cursor.name(),))
