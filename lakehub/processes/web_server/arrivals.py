"""What has come of a request, and what of it is refused before a thread has it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

HEAD_TIMEOUT_S = 10.0
"""From the first moment to the end of the headers."""
BODY_TIMEOUT_S = 30.0
"""From the end of the headers to the end of the body."""
MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 2 * 1024 * 1024
"""More than any address takes: `DATA_UPLOAD_MAX_MEMORY_SIZE` and the form around it."""
_END_OF_HEAD = b"\r\n\r\n"
_LENGTHS = re.compile(rb"\r\ncontent-length[^:\r\n]*:([^\r\n]*)", re.IGNORECASE)
_LENGTH = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]*")
_ENCODING = re.compile(rb"\r\ntransfer-encoding[ \t]*:", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)
_FORWARDED_FOR = re.compile(rb"\r\nx-forwarded-for[ \t]*:([^\r\n]*)", re.IGNORECASE)


class RequestRefused(Exception):
    """It is answered without a thread; the text is status and reason."""


@dataclass
class Arrival:
    """What has come of one request."""

    deadline: float
    received: bytearray
    searched: int = 0
    """Up to here there is no end of the headers."""
    size: int = 0
    """Of the whole request; 0: not known before the headers are whole."""

    def is_whole(self, *, now: float, send: Callable[[bytes], object]) -> bool:
        """`send`: to the client, who may wait for a word before it sends a body. Raises RequestRefused."""
        if not self.size:
            end = self.received.find(_END_OF_HEAD, self.searched)
            if end < 0:
                self.searched = max(0, len(self.received) - len(_END_OF_HEAD) + 1)
                if len(self.received) > MAX_HEAD_BYTES:
                    raise RequestRefused("431 Request Header Fields Too Large")
                return False
            head = bytes(self.received[: end + len(_END_OF_HEAD)])
            self.size = len(head) + _body_size(head)
            self.deadline = now + BODY_TIMEOUT_S
            expects = _EXPECTS.search(head)
            if expects and len(self.received) < self.size:
                send(b"HTTP/1.1 100 Continue\r\n\r\n")
                # Said once: gunicorn would say it again.
                del self.received[expects.start() : expects.end()]
                self.size -= expects.end() - expects.start()
        return len(self.received) >= self.size

    @property
    def forwarded_for(self) -> str:
        """Of a request that is whole."""
        head, _, _ = self.received.partition(_END_OF_HEAD)
        return b",".join(_FORWARDED_FOR.findall(head)).decode("latin-1")


def _body_size(head: bytes) -> int:
    """Raises RequestRefused, also for a length that gunicorn may read otherwise: its thread would wait for that body."""
    if len(head) > MAX_HEAD_BYTES:
        raise RequestRefused("431 Request Header Fields Too Large")
    if _ENCODING.search(head):
        raise RequestRefused("411 Length Required")
    lengths = [_LENGTH.fullmatch(text) for text in _LENGTHS.findall(head)]
    if not lengths:
        return 0
    if len(lengths) > 1 or lengths[0] is None:
        raise RequestRefused("400 Bad Request")
    size = int(lengths[0][1])
    if size > MAX_BODY_BYTES:
        raise RequestRefused("413 Content Too Large")
    return size
