"""Confluent's own client and serializers work with our registry as with theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.serialization import MessageField, SerializationContext
from pytest_django.live_server_helper import LiveServer

from ingestion.domain.schema import Schema as Columns
from ingestion.heatpipe.decoder import Decoder
from ingestion.heatpipe.encoder import Encoder
from ingestion.heatpipe.event_schema import event_schema
from ingestion.heatpipe.subject_schema import SubjectSchema
from lakehub import clock
from lakehub.accounts.models import Role
from lakehub.accounts.tokens.api_tokens import issue_token
from tests import factories as given
from tests.unit.ingestion.heatpipe.messages import NOW, change

pytestmark = pytest.mark.django_db(transaction=True)
VALUE = SerializationContext("trips", MessageField.VALUE)
SUBJECT = "trips-value"


def record(**types: object) -> str:
    fields = [
        {"name": name, "type": type_} | ({"default": None} if isinstance(type_, list) else {})
        for name, type_ in types.items()
    ]
    return json.dumps({"type": "record", "name": "Trip", "fields": fields})


@pytest.fixture
def client(live_server: LiveServer) -> Iterator[SchemaRegistryClient]:
    user = given.user()
    given.member(user, team := given.team(), Role.OWNER)
    scopes = ["schemas:read", "schemas:write"]
    _, secret = issue_token(
        name="producer", consumer="producer", team=team, created_by=user, scopes=scopes, now=clock.now()
    )
    url = f"{live_server.url}/api/v1/schema-registry"
    with SchemaRegistryClient({"url": url, "basic.auth.user.info": f"producer:{secret}"}) as registry:
        yield registry


def avro(**types: object) -> Schema:
    return Schema(record(**types), "AVRO")


def test_what_the_serializer_writes_the_deserializer_reads(client: SchemaRegistryClient) -> None:
    writes = AvroSerializer(client, record(id="long", city="string"))
    message = writes({"id": 42, "city": "München"}, VALUE)
    assert message is not None
    assert AvroDeserializer(client)(message, VALUE) == {"id": 42, "city": "München"}
    newer = AvroSerializer(client, record(id="long", city="string", seats=["null", "int"]))(
        {"id": 1, "city": "Ulm", "seats": 4}, VALUE
    )
    assert newer is not None
    reads = AvroDeserializer(client, record(id="long", seats=["null", "int"]))
    assert [reads(each, VALUE) for each in (message, newer)] == [{"id": 42, "seats": None}, {"id": 1, "seats": 4}]
    assert client.get_versions(SUBJECT) == [1, 2]


def test_a_serializer_is_refused_a_schema_that_may_not_follow(client: SchemaRegistryClient) -> None:
    AvroSerializer(client, record(id="long"))({"id": 42}, VALUE)
    with pytest.raises(SchemaRegistryError, match="is not there in what was written, and has no default") as refused:
        AvroSerializer(client, record(id="long", city="string"))({"id": 42, "city": "Ulm"}, VALUE)
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)


def test_the_calls_of_the_client(client: SchemaRegistryClient) -> None:
    number = client.register_schema(SUBJECT, avro(id="long"))
    assert client.get_schema(number).schema_str == record(id="long")
    assert client.lookup_schema(SUBJECT, avro(id="long")).version == 1
    assert client.get_latest_version(SUBJECT).schema_id == number
    assert client.get_version(SUBJECT, 1).subject == SUBJECT
    assert client.get_subjects() == [SUBJECT]
    assert client.test_compatibility(SUBJECT, avro(id="long", seats=["null", "int"]))
    assert not client.test_compatibility(SUBJECT, avro(id="long", seats="int"))
    assert client.get_compatibility(SUBJECT) == "BACKWARD"
    assert client.set_compatibility(SUBJECT, "FULL_TRANSITIVE")["compatibility"] == "FULL_TRANSITIVE"
    assert client.get_compatibility(SUBJECT) == "FULL_TRANSITIVE"


@pytest.mark.parametrize(
    ("call", "code"), [("get_latest_version", 40401), ("get_versions", 40401), ("get_compatibility", 40401)]
)
def test_what_is_not_there_is_told_by_the_number_that_the_client_knows(
    client: SchemaRegistryClient, call: str, code: int
) -> None:
    with pytest.raises(SchemaRegistryError) as refused:
        getattr(client, call)("nope")
    assert refused.value.error_code == code


def test_a_change_event_is_read_by_confluents_deserializer_and_theirs_by_ours(client: SchemaRegistryClient) -> None:
    """With no knowledge of Lakehub but the address of the registry."""
    columns = Columns.of({"id": "long", "city": "string", "fare": "decimal(8,2)"})
    schema = event_schema(SUBJECT, columns)
    number = client.register_schema(SUBJECT, Schema(json.dumps(schema), "AVRO"))
    registered = SubjectSchema(SUBJECT, 1, number, schema)
    event = change({"id": 42, "city": "Ulm", "fare": None})
    message = Encoder(registered, ("id",), "mysql:ops/shop.trips", "dc1", lambda: NOW).encode(event).value
    read = AvroDeserializer(client)(message, VALUE)
    assert read is not None
    assert read["row"] == {"id": 42, "city": "Ulm", "fare": None}
    assert (read["metadata"]["row_key"], read["metadata"]["schematised_at"]) == ('["42"]', NOW)
    theirs = AvroSerializer(client, json.dumps(schema))(read, VALUE)
    assert theirs is not None
    assert Decoder(SUBJECT, ("id",), int, {number: registered}.get).decode(theirs, event.position).event == event
