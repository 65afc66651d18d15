"""The wire format of Confluent's serializers: a zero byte, the schema's id in four bytes (big-endian), and the Avro record without a header."""

from __future__ import annotations

import struct

from ingestion.heatpipe.broken_message import BrokenMessage, Defect

_HEADER = struct.Struct(">bI")
_MAGIC = 0
HEADER_BYTES = _HEADER.size
MAX_MESSAGE_BYTES = 8 * 2**20
"""A message that is longer is broken, whatever its header says."""


def header(schema_id: int) -> bytes:
    return _HEADER.pack(_MAGIC, schema_id)


def schema_id_of(message: bytes, *, most: int = MAX_MESSAGE_BYTES) -> int:
    """Raises BrokenMessage."""
    if not message:
        raise BrokenMessage(Defect.EMPTY, "The message is empty.")
    if len(message) > most:
        raise BrokenMessage(Defect.OVERSIZED, f"The message has {len(message):,} bytes; {most:,} are allowed.")
    if message[0] != _MAGIC:
        raise BrokenMessage(Defect.MAGIC_BYTE, f"The first byte is {message[0]}; a message in Avro begins with 0.")
    if len(message) < HEADER_BYTES:
        raise BrokenMessage(
            Defect.TRUNCATED, f"The message has {len(message)} bytes, and the header alone has {HEADER_BYTES}."
        )
    return int(_HEADER.unpack_from(message)[1])
