"""Lines from a TCP socket."""

from penstock.connectors.socket_source import SocketTextSource

__all__ = ["SocketTextSource"]
