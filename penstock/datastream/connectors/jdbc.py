"""SQL databases: PostgreSQL, SQLite and, for plain statements and queries, every database that SQLAlchemy knows."""

from penstock.connectors.jdbc.jdbc_sink import *  # noqa: F403
from penstock.connectors.jdbc.jdbc_sink import __all__  # noqa: F401
