"""A mail server on loopback that speaks just enough SMTP to keep what it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread


@dataclass
class Mailbox:
    port: int = 0
    refuses: frozenset[str] = frozenset()
    """Recipients that are told 550."""
    later: frozenset[str] = frozenset()
    """Recipients that are told 450."""
    got: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    """(recipients, message)"""


@contextmanager
def mail_server(*refuses: str, later: tuple[str, ...] = ()) -> Iterator[Mailbox]:
    kept = Mailbox(refuses=frozenset(refuses), later=frozenset(later))

    class Session(StreamRequestHandler):
        def handle(self) -> None:
            recipients: list[str] = []
            self._say("220 mailbox")
            while line := self.rfile.readline():
                word = line[:4].upper()
                if word == b"QUIT":
                    self._say("221 bye")
                    return
                if word == b"RCPT":
                    address = line.decode().partition("<")[2].partition(">")[0]
                    if address in kept.refuses:
                        self._say("550 nobody here by that name")
                        continue
                    if address in kept.later:
                        self._say("450 not now")
                        continue
                    recipients.append(address)
                if word == b"DATA":
                    self._say("354 go on")
                    kept.got.append((recipients, self._message()))
                    recipients = []
                self._say("250 fine")

        def _message(self) -> EmailMessage:
            lines = iter(self.rfile.readline, b".\r\n")
            text = b"".join(line.removeprefix(b".") if line.startswith(b"..") else line for line in lines)
            message = message_from_bytes(text, policy=policy.default)
            assert isinstance(message, EmailMessage)
            return message

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    ThreadingTCPServer.allow_reuse_address = True
    with ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        server.daemon_threads = True
        kept.port = server.server_address[1]
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield kept
        server.shutdown()
        thread.join()
