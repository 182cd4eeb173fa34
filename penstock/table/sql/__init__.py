"""SQL: from a text to statements, and from queries to plans with resolved names and types."""

from penstock.table.sql.bind.binder import Binder
from penstock.table.sql.bind.binder_session import Functions, Session
from penstock.table.sql.parse.expression_printing import print_expression
from penstock.table.sql.parse.statement_parser import parse, parse_expression
from penstock.table.sql.parse.type_parser import parse_type

__all__ = ["Binder", "Functions", "Session", "parse", "parse_expression", "parse_type", "print_expression"]
