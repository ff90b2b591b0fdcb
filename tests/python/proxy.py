"""A TCP proxy that a test can cut, stop, and point to another server."""

from __future__ import annotations

import contextlib
import socket
import threading
import time


class Proxy:
    """Listens on a free port and passes bytes on to `target`, a port of this machine."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.refusing = False
        """New connections are closed at once."""
        self.delay = 0.0
        """How long bytes wait on each way, s."""
        self._pairs: set[socket.socket] = set()
        self._silent: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Ends all connections, wherever their bytes are; how many there were."""
        with self._lock:
            sockets, self._pairs = self._pairs, set()
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        return len(sockets) // 2

    def silence(self) -> None:
        """The connections that there are stay open, and nothing passes on them any more."""
        with self._lock:
            self._silent |= self._pairs

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # else `accept`, which waits, takes one more connection
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self.refusing:
                    raise ConnectionRefusedError
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._pairs |= {client, server}
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                time.sleep(self.delay)
                if source not in self._silent:
                    sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._pairs -= {source, sink}
