"""The network between the instance and the source: it passes bytes on, slowly, not at all, or refuses connections."""

from __future__ import annotations

import socket
from contextlib import suppress
from enum import StrEnum
from threading import Event, Thread

_CHUNK, _SLOW_CHUNK = 1 << 16, 512
_SLOW_PAUSE_S = 0.05
_LOOK_EVERY_S = 0.05


class Line(StrEnum):
    """What the network does."""

    PASSES = "passes"
    SLOW = "slow"
    """Some 10 kB/s."""
    SILENT = "silent"
    """Connections stay, and are even accepted; nothing comes through."""
    REFUSES = "refuses"


class Forwarder:
    """Listens on a loopback port of its own and forwards to `target_port`."""

    def __init__(self, target_port: int) -> None:
        self._target = ("127.0.0.1", target_port)
        self._listener: socket.socket | None = None
        self.line = Line.PASSES
        self.port = 0
        self.open_connections = 0
        self._pause = Event()
        self._listen()

    def set_line(self, line: Line) -> None:
        self.line = line
        if line is Line.REFUSES:
            self.close()
        elif self._listener is None:
            self._listen()

    def close(self) -> None:
        if self._listener is not None:
            listener, self._listener = self._listener, None
            # Wakes the thread that waits for connections.
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _listen(self) -> None:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self.port, self._listener = listener.getsockname()[1], listener
        Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # closed
                return
            Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        self.open_connections += 1
        back = Thread(target=self._pump, args=(server, client), daemon=True)
        back.start()
        self._pump(client, server)
        back.join()
        self.open_connections -= 1
        client.close()
        server.close()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        """Until one side closes; then the other one is told."""
        with suppress(OSError):
            while chunk := source.recv(_CHUNK):
                self._pass_on(chunk, target)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _pass_on(self, chunk: bytes, target: socket.socket) -> None:
        while chunk:
            while self.line is Line.SILENT:
                self._pause.wait(_LOOK_EVERY_S)
            if self.line is Line.REFUSES:
                raise ConnectionResetError
            size = _SLOW_CHUNK if self.line is Line.SLOW else len(chunk)
            target.sendall(chunk[:size])
            chunk = chunk[size:]
            if self.line is Line.SLOW:
                self._pause.wait(_SLOW_PAUSE_S)
