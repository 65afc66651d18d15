"""What a registry of schemas answers, and what of it is the fault of a message: the tap goes on then, and waits otherwise."""

from __future__ import annotations

import json

import pytest

from lakehub.source_topics.broken import UNKNOWN_SCHEMA, BadMessage, TopicsError
from lakehub.source_topics.registry import SchemaRegistry

LARGE = json.dumps({"schema": json.dumps({"type": "enum", "name": "E", "symbols": ["a" * 3_000_000]})}).encode()


class Answering(SchemaRegistry):
    """As it would over the network, which cuts off what is too long."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__("https://registry.example.org")
        self.status, self.body, self.asked = status, body, list[str]()

    def _get(self, path: str) -> tuple[int, bytes]:
        self.asked.append(path)
        return self.status, self.body[: 2 * 2**20]


@pytest.mark.parametrize(
    ("number", "status", "body", "why"),
    [
        (7, 404, b"<html>", "The registry has no schema 7"),
        (7, 200, LARGE, "Schema 7 has more than 2 MiB"),
        (7, 200, b'{"schema": "{", "schemaType": "AVRO"}', "cannot be read"),
        (2**31, 500, b"", "their numbers are below 2,147,483,648"),
        (2**32 - 1, 500, b"", "No registry has a schema 4,294,967,295"),
    ],
)
def test_what_a_message_names_is_its_own_fault(number: int, status: int, body: bytes, why: str) -> None:
    with pytest.raises(BadMessage, match=why) as broken:
        Answering(status, body).schema(number)
    assert broken.value.defect == UNKNOWN_SCHEMA


@pytest.mark.parametrize(
    ("status", "body"), [(500, b""), (401, b""), (200, b"<html>"), (200, b"[" * 100_000), (200, b"{}")]
)
def test_a_registry_that_answers_otherwise_is_asked_again(status: int, body: bytes) -> None:
    registry = Answering(status, body)
    for _ in range(2):
        with pytest.raises(TopicsError, match=f"registry.example.org answered {status}"):
            registry.schema(2**31 - 1)
    assert registry.asked == ["/schemas/ids/2147483647"] * 2
