"""A proxy that passes requests on and, once, keeps the answer to itself."""

import socket
import threading
from contextlib import suppress


class Cutting:
    """Cuts the connection when the first request that contains `marker` has been answered."""

    def __init__(self, port, marker):
        self._server = ("127.0.0.1", port)
        self._marker = marker.lower()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                due = threading.Event()
                threading.Thread(target=self._requests, args=[client, server, due], daemon=True).start()
                threading.Thread(target=self._answers, args=[server, client, due], daemon=True).start()

    def _requests(self, client, server, due):
        with suppress(OSError), client, server:
            while data := client.recv(1 << 16):
                if self._marker in data.lower() and self.cuts == 0:
                    due.set()
                server.sendall(data)

    def _answers(self, server, client, due):
        with suppress(OSError), client, server:
            while data := server.recv(1 << 16):
                if due.is_set():
                    self.cuts += 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)

    def close(self):
        self._listener.close()
