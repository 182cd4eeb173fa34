"""Lines from a TCP socket."""

from penstock.connectors.socket import SocketTextSource

__all__ = ["SocketTextSource"]
