"""What a registry of schemas answers, and what of it is the fault of a message: the tap goes on then, and waits otherwise."""

from __future__ import annotations

import json

import pytest

from lakehub.source_topics.broken import UNKNOWN_SCHEMA, BadMessage, RegistrySilent
from lakehub.source_topics.registry import ASK_AGAIN_S, MOST_REFUSED, UNKNOWN_S, SchemaRegistry

LARGE = json.dumps({"schema": json.dumps({"type": "enum", "name": "E", "symbols": ["a" * 3_000_000]})}).encode()


class Answering(SchemaRegistry):
    """As it would over the network, which cuts off what is too long."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__("https://registry.example.org", lambda: self.now)
        self.status, self.body, self.asked, self.now = status, body, list[str](), 0.0

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
        with pytest.raises(RegistrySilent, match=f"registry.example.org answered {status}") as silent:
            registry.schema(2**31 - 1)
        assert silent.value.until == ASK_AGAIN_S
    assert registry.asked == ["/schemas/ids/2147483647"] * 2


class Unreachable(Answering):
    """Each attempt takes ten seconds."""

    def _get(self, path: str) -> tuple[int, bytes]:
        self.asked.append(path)
        self.now += 10
        if self.status == 0:
            raise TimeoutError("timed out")
        return self.status, self.body


def test_a_registry_that_is_not_reached_is_left_alone_for_longer_than_that_took() -> None:
    registry = Unreachable(0, b'{"schema": "\\"string\\""}')
    for number in range(1_000):
        with pytest.raises(RegistrySilent, match="was not reached: timed out") as silent:
            registry.schema(number)
        assert silent.value.until == 10 + ASK_AGAIN_S + 50
    assert (registry.now, len(registry.asked)) == (10, 1)
    registry.now, registry.status = silent.value.until, 200
    assert registry.schema(1) == "string"


OTHER = b'{"schema": "{}", "schemaType": "PROTOBUF"}'


@pytest.mark.parametrize(
    ("status", "body", "asked_again"),
    [(200, LARGE, 0), (200, OTHER, 0), (200, b'{"schema": "{"}', 0), (404, b"", 1)],
)
def test_messages_that_name_what_cannot_be_read_cost_one_request(status: int, body: bytes, asked_again: int) -> None:
    registry = Answering(status, body)
    reasons = {refusal(registry, 7) for _ in range(1_000)}
    assert (len(reasons), registry.asked) == (1, ["/schemas/ids/7"])
    registry.now += UNKNOWN_S + 1
    reasons |= {refusal(registry, 7) for _ in range(1_000)}
    assert (len(reasons), len(registry.asked)) == (1, 1 + asked_again)


def test_a_schema_that_is_registered_later_is_read_by() -> None:
    registry = Answering(404, b"")
    refusal(registry, 7)
    registry.status, registry.body = 200, b'{"schema": "\\"string\\""}'
    registry.now += UNKNOWN_S
    assert registry.schema(7) == registry.schema(7) == "string"
    assert len(registry.asked) == 2


def test_what_is_remembered_of_numbers_has_a_bound_and_keeps_those_that_are_named() -> None:
    registry = Answering(200, OTHER)
    for number in range(MOST_REFUSED + 10):
        refusal(registry, number)
        refusal(registry, 0)
    assert len(registry._refused) == MOST_REFUSED
    assert registry.asked.count("/schemas/ids/0") == 1


def refusal(registry: SchemaRegistry, number: int) -> str:
    with pytest.raises(BadMessage) as broken:
        registry.schema(number)
    assert broken.value.defect == UNKNOWN_SCHEMA
    return str(broken.value)
