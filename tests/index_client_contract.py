"""What every client of the Global Index does alike. A module with a fixture `client` imports these tests: of a new table with its mark."""

from __future__ import annotations

from ingestion.index.client import IndexClient
from ingestion.index.entries import Entry

KEYS = [f"key {number}" for number in range(2_500)]
LONG = "ü" * 20_000
HERE, THERE = Entry("day=2026-11-16", "f-1", "20261116090000000"), Entry("", "f-2", "20261116100000000")


def test_entries_are_put_and_found_and_the_later_one_stands(client: IndexClient) -> None:
    """In whatever order they come: what is done twice, or late, changes nothing."""
    client.put(dict.fromkeys([*KEYS, LONG, "a\0b"], HERE), at_ms=1_000)
    assert client.get([*KEYS, "nowhere", LONG, "a\0b", LONG]) == dict.fromkeys([*KEYS, LONG, "a\0b"], HERE)
    assert (client.reads, client.writes) == (2_503, 2_502)
    client.put({"key 7": THERE}, at_ms=3_000)
    client.put({"key 7": HERE}, at_ms=2_000)
    client.delete(["key 7", "key 8", "never there"], at_ms=2_500)
    assert client.get(["key 7", "key 8"]) == {"key 7": THERE}
    client.put({"key 8": HERE}, at_ms=2_400)
    assert client.get(["key 8"]) == {}
    client.put({"key 8": THERE}, at_ms=2_600)
    scanned = [entry for region in client.regions() for entry in client.scan(region.start, region.end)]
    assert dict(scanned) == dict.fromkeys([*KEYS, LONG, "a\0b"], HERE) | {"key 7": THERE, "key 8": THERE}
    assert [key for key, _ in client.scan(b"key 77", b"key 779")] == ["key 77", *(f"key 77{n}" for n in range(9))]


def test_what_is_noted_is_no_entry(client: IndexClient) -> None:
    client.note({"followed:1": "2", "followed:3": "4"})
    client.note({"followed:5": "6"}, forget=["followed:1"])
    assert client.state() == {"followed:3": "4", "followed:5": "6"}
    assert [*client.scan(b"", b"")] == []


def test_an_entry_may_have_empty_parts_and_any_character(client: IndexClient) -> None:
    odd = Entry("day=\x01:e:f=ü\n%2F", "f:1", "")
    client.put({"k:e:f": odd}, at_ms=1_000)
    assert client.get(["k:e:f"]) == {"k:e:f": odd}
