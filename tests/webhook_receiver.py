"""Web servers on loopback: one keeps what is posted to it, and answers as it is told; one never ends its answer."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Event, Thread
from typing import Any


@dataclass
class Receiver:
    status: int = 200
    says: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    """(headers, body)"""
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?team=ops"

    def posted(self) -> list[Any]:
        return [json.loads(body) for _, body in self.got]


@contextmanager
def web_server() -> Iterator[Receiver]:
    kept = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.got.append((dict(self.headers), body))
            self.send_response(kept.status)
            for name, value in {"Content-Length": str(len(kept.says)), **kept.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(kept.says.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept.port = server.server_port
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield kept
        server.shutdown()
        thread.join()


HALF_A_HEADER = b"HTTP/1.1 200 OK\r\nX-Slow: "


@contextmanager
def dripping_server(begin: bytes, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Its port on loopback. It answers each connection with `begin`, and then with a letter every few hundredths of a second for ever."""
    over = Event()

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with tls.wrap_socket(self.request, server_side=True) if tls else self.request as peer, suppress(OSError):
                peer.sendall(begin)
                while not over.wait(0.02):
                    peer.sendall(b"a")

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            over.set()
            server.shutdown()
            thread.join()
