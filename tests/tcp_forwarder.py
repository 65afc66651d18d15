"""A server of a test in front of a real one, or of none: it accepts whoever connects, and can go silent at any moment."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Event, Lock, Thread
from types import TracebackType

BLOCK = 4096


class TcpForwarder:
    """Passes bytes both ways to `target`; to None it never says a word. After `be_silent` it takes everything and answers nothing.

    `silent_after`: it goes silent by itself when the target has answered so many bytes on one connection.
    """

    def __init__(self, target: tuple[str, int] | None = None, *, silent_after: int | None = None) -> None:
        self._target, self._silent_after = target, silent_after
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._is_silent, self._lock, self._sockets = Event(), Lock(), list[socket.socket]()
        self.accepted = 0
        if target is None:
            self._is_silent.set()
        Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def be_silent(self) -> None:
        self._is_silent.set()

    def speak_again(self) -> None:
        """To whoever connects from now on."""
        self._is_silent.clear()

    def __enter__(self) -> TcpForwarder:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._listener.close()
        with self._lock:
            for opened in self._sockets:
                with suppress(OSError):  # a thread may wait on it, which closing alone would not wake
                    opened.shutdown(socket.SHUT_RDWR)
                opened.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # the test is over
                return
            with self._lock:
                self.accepted += 1
                self._sockets.append(client)
            if self._target is not None and not self._is_silent.is_set():
                server = socket.create_connection(self._target)
                with self._lock:
                    self._sockets.append(server)
                Thread(target=self._pass, args=(client, server, None), daemon=True).start()
                Thread(target=self._pass, args=(server, client, self._silent_after), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, silent_after: int | None) -> None:
        passed = 0
        with suppress(OSError):
            while block := source.recv(BLOCK):
                if silent_after is not None and passed + len(block) > silent_after:
                    self._is_silent.set()
                if self._is_silent.is_set():
                    continue
                sink.sendall(block)
                passed += len(block)
            sink.shutdown(socket.SHUT_WR)
