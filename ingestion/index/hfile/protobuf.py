"""The little of protobuf that HFiles need: messages of whole numbers and of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ingestion.index.hfile.unreadable import UnreadableHFile

Field = tuple[int, int | bytes]
"""The field's number, and its value."""
_NUMBER, _BYTES = 0, 2
_MAX_VARINT_BYTES = 10


def message(fields: Iterable[Field]) -> bytes:
    """Numbers are at least 0."""
    encoded = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            encoded += varint(number << 3 | _NUMBER) + varint(value)
        else:
            encoded += varint(number << 3 | _BYTES) + delimited(value)
    return bytes(encoded)


def delimited(content: bytes) -> bytes:
    return varint(len(content)) + content


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def parsed_message(content: bytes) -> Mapping[int, list[int | bytes]]:
    """The values of each field in their order. Raises UnreadableHFile."""
    values: dict[int, list[int | bytes]] = {}
    at = 0
    while at < len(content):
        tag, at = parsed_varint(content, at)
        if tag & 7 == _NUMBER:
            value, at = parsed_varint(content, at)
            values.setdefault(tag >> 3, []).append(value)
        elif tag & 7 == _BYTES:
            text, at = parsed_delimited(content, at)
            values.setdefault(tag >> 3, []).append(text)
        else:
            raise UnreadableHFile(f"The file is damaged: a field of its metadata is of the unknown type {tag & 7}.")
    return values


def parsed_delimited(content: bytes, at: int) -> tuple[bytes, int]:
    """What stands at `at` behind its length, and where it ends. Raises UnreadableHFile."""
    length, at = parsed_varint(content, at)
    if at + length > len(content):
        raise UnreadableHFile(
            f"The file is damaged: {length:,} bytes of metadata are announced, {len(content) - at:,} are there."
        )
    return content[at : at + length], at + length


def parsed_varint(content: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where it ends. Raises UnreadableHFile."""
    number = 0
    for place, byte in enumerate(content[at : at + _MAX_VARINT_BYTES]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number, at + place + 1
    raise UnreadableHFile("The file is damaged: a number of its metadata does not end.")
