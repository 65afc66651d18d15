"""Which schemas a subject takes, how they are numbered, and who may register them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from django.test import Client

from ingestion.models import SchemaSubject, SchemaVersion
from ingestion.schemas import registry
from ingestion.schemas.avro_text import MAX_BYTES, MAX_DEPTH
from lakehub import clock
from lakehub.accounts.models import AuditEntry, Role, Team, User
from lakehub.accounts.tokens.api_tokens import issue_token
from lakehub.kernel.errors import Conflict, Refused
from tests import factories as given
from tests.factories import NOW

SUBJECT = "trips-value"
URL = "/api/v1/schema-registry"
VERSIONS = f"{URL}/subjects/{SUBJECT}/versions"
JSON = "application/vnd.schemaregistry.v1+json"

pytestmark = pytest.mark.django_db


def record(**types: Any) -> str:
    """Columns that may be null."""
    fields = [{"name": name, "type": ["null", type_], "default": None} for name, type_ in types.items()]
    return json.dumps({"type": "record", "name": "Trip", "fields": fields})


def strict(**types: Any) -> str:
    fields = [{"name": name, "type": type_} for name, type_ in types.items()]
    return json.dumps({"type": "record", "name": "Trip", "fields": fields})


@pytest.fixture
def team() -> Team:
    return given.team()


def register(text: str, team: Team, subject: str = SUBJECT) -> SchemaVersion:
    return registry.register(subject, text, team=team, actor="ana", now=NOW)


def client_of(team: Team, role: Role = Role.OWNER) -> Client:
    client, user = Client(), given.user()
    given.member(user, team, role)
    client.force_login(user)
    return client


def send(client: Client, path: str, method: str = "post", **body: Any) -> Any:
    answer = getattr(client, method)(path, json.dumps(body), content_type=JSON)
    return answer.status_code, answer.json()


def test_versions_are_numbered_within_their_subject_and_their_ids_among_all(team: Team) -> None:
    first, other, second = (
        register(record(id="long"), team),
        register(record(id="long"), team, "riders-value"),
        register(record(id="long", city="string"), team),
    )
    assert [version.version for version in (first, other, second)] == [1, 1, 2]
    assert len({first.pk, other.pk, second.pk}) == 3
    assert registry.find_version(SUBJECT).pk == second.pk


def test_a_schema_is_registered_once_however_it_is_laid_out(team: Team) -> None:
    first = register(record(id="long"), team)
    again = json.dumps(dict(reversed(json.loads(record(id="long")).items())), indent=3)
    assert register(again, team).pk == first.pk
    assert registry.find_registered(SUBJECT, again).pk == first.pk
    assert AuditEntry.objects.filter(action="register schema").count() == 1


def test_a_default_and_a_type_of_times_make_another_schema(team: Team) -> None:
    for type_ in ("long", {"type": "long", "logicalType": "timestamp-micros"}):
        register(strict(at=type_), team)
    assert registry.find_version(SUBJECT).version == 2


def test_a_schema_that_may_not_follow_is_refused_and_nothing_is_kept(team: Team) -> None:
    register(record(id="long", fare="string"), team)
    with pytest.raises(
        registry.Incompatible, match=r"may not follow version 1 of trips-value.*`fare` was written as string"
    ):
        register(record(id="long", fare="int"), team)
    assert SchemaVersion.objects.count() == 1


def test_the_rule_of_a_subject_decides(team: Team) -> None:
    register(strict(id="long"), team)
    subject = registry.find_subject(SUBJECT)
    with pytest.raises(registry.Incompatible):
        register(strict(id="long", city="string"), team)
    registry.set_rule(subject, "FORWARD", actor="ana", now=NOW)
    register(strict(id="long", city="string"), team)
    registry.set_rule(subject, "backward_transitive", actor="ana", now=NOW)
    with pytest.raises(registry.Incompatible, match="what version 1 wrote"):
        register(strict(id="long", city="string", more="string"), team)
    changes = AuditEntry.objects.filter(action="set schema rule", team=team).order_by("pk")
    assert [entry.detail for entry in changes] == [
        {"before": "backward", "after": "forward"},
        {"before": "forward", "after": "backward_transitive"},
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ('{"type": "record"}', "not an Avro schema"),
        ('{"type": "nope"}', "not an Avro schema: .*nope"),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), "nested deeper than 60"),
        ("[" * 100_000, "nested deeper"),
        (json.dumps({"type": "string", "doc": "x" * MAX_BYTES}), "more than 512 KiB"),
        ('{"type":"array","doc":"}","items":' * 100 + '"int"' + "}" * 100, "nested deeper"),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "double", "default": NaN}]}',
            "NaN is not a value",
        ),
        (r'{"type": "string", "doc": "\ud800"}', "half of a surrogate pair"),
        (r'{"type": "record", "name": "R\ud800", "fields": []}', "half of a surrogate pair"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a", "type": "Nope"}]}', "not an Avro schema"),
        ('{"type": "bytes", "logicalType": "decimal", "precision": "x"}', "not an Avro schema"),
        ("17", "not an Avro schema"),
        ("null", "not an Avro schema"),
        ('{"type": "fixed", "name": "F", "size": "x"}', "not an Avro schema"),
        ('{"type": "enum", "name": "E", "symbols": ["a", "a"]}', "not an Avro schema"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a-b", "type": "int"}]}', "not an Avro schema"),
    ],
)
def test_what_is_no_schema_is_refused(team: Team, text: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        register(text, team)
    assert not SchemaVersion.objects.exists()


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "x" * 201, "a\n", ".", ".."])
def test_the_name_of_a_subject_is_plain(team: Team, name: str) -> None:
    with pytest.raises(Refused, match="is not a subject"):
        register(record(id="long"), team, name)


def test_dots_within_a_name_are_plain(team: Team) -> None:
    assert register(record(id="long"), team, "...").subject.name == "..."


def test_a_version_that_came_in_between_is_not_followed_unseen(team: Team) -> None:
    first = register(record(id="long"), team)
    seen = {"team": team, "actor": "bo", "now": NOW, "after": first.version}
    registry.register(SUBJECT, record(id="long", city="string"), **seen)
    with pytest.raises(Conflict, match="Version 2 of trips-value was registered in the meantime"):
        registry.register(SUBJECT, record(id="long", fare="long"), **seen)
    with pytest.raises(Conflict):
        registry.register(SUBJECT, record(id="long", fare="long"), **{**seen, "after": 0})
    assert registry.find_version(SUBJECT).version == 2


def test_types_that_name_each_other_in_chains_of_thousands_are_refused(team: Team) -> None:
    def chain(prefix: str) -> str:
        """The types are defined under other names than before, so the last one is compared first."""
        structs = [
            {
                "type": "record",
                "name": f"A{number}",
                "fields": [{"name": "f", "type": f"A{number - 1}"}] if number else [],
            }
            for number in range(2_000)
        ]
        fields = [
            {"name": f"{prefix}{number}", "type": ["null", struct], "default": None}
            for number, struct in enumerate(structs)
        ]
        return json.dumps({"type": "record", "name": "R", "fields": [*fields, {"name": "x", "type": "A1999"}]})

    register(chain("d"), team)
    with pytest.raises(Refused, match="too long a chain to be compared"):
        register(chain("e"), team)


def test_a_schema_with_too_many_types_of_one_name_is_refused_and_not_compared_for_minutes(team: Team) -> None:
    def union(doc: str) -> str:
        return json.dumps(
            [{"type": "record", "name": f"n{number}.R", "fields": [], "doc": doc} for number in range(1_000)]
        )

    register(union(""), team)
    with pytest.raises(
        Refused, match="too many types to be compared with those of trips-value: more than 200,000 pairs"
    ):
        register(union("again"), team)


@pytest.mark.parametrize("length", [2_000, 2_001])
def test_a_reason_has_its_bounds(team: Team, length: int) -> None:
    version = register(record(id="long"), team)
    if length > 2_000:
        with pytest.raises(Refused, match="has 2,001 characters"):
            registry.deprecate(version, "x" * length, actor="ana", now=NOW)
    else:
        registry.deprecate(version, "x" * length, actor="ana", now=NOW)
    assert bool(version.deprecated_at) == (length == 2_000)


def test_a_version_is_deprecated_with_a_reason_and_read_as_before(team: Team) -> None:
    version = register(record(id="long"), team)
    client = client_of(team)
    assert send(client, f"{VERSIONS}/1/deprecate", why=" ")[0] == 400
    status, body = send(client, f"{VERSIONS}/1/deprecate", why="Use version 2")
    assert (status, body["deprecated"]) == (200, "Use version 2")
    assert client.get(f"{URL}/schemas/ids/{version.pk}").json() == {"schema": version.text}


def test_who_may_register_and_who_may_not(team: Team) -> None:
    register(record(id="long"), team)
    stranger = client_of(given.team("pricing"))
    status, body = send(stranger, VERSIONS, schema=record(id="long", x="int"))
    assert (status, body["error_code"]) == (403, 403)
    assert "you need to be owner or admin of team flight-ops" in body["message"]
    assert send(client_of(team, Role.VIEWER), VERSIONS, schema=record(id="long", x="int"))[0] == 403
    assert send(stranger, f"{URL}/config/{SUBJECT}", "put", compatibility="NONE")[0] == 403
    assert send(stranger, f"{VERSIONS}/1/deprecate", why="x")[0] == 403
    assert send(client_of(team), VERSIONS, schema=record(id="long", x="int"))[0] == 200
    assert stranger.get(f"{VERSIONS}/latest").json()["version"] == 2, "everybody who is signed in reads"
    assert Client().get(f"{VERSIONS}/latest").status_code in (401, 403)


def test_a_new_subject_belongs_to_the_team_that_registers_it(team: Team) -> None:
    assert send(client_of(team), VERSIONS, schema=record(id="long"))[0] == 200
    assert registry.find_subject(SUBJECT).team == team
    member, both = client_of(team), given.team("pricing")
    given.member(User.objects.get(pk=member.session["_auth_user_id"]), both, Role.OWNER)
    status, body = send(member, f"{URL}/subjects/other/versions", schema=record(id="long"))
    assert status == 422
    assert "register it with a token of its team" in body["message"]
    assert not SchemaSubject.objects.filter(name="other").exists()


def test_the_subject_of_a_dataset_that_will_be_captured_cannot_be_taken_before(team: Team) -> None:
    """Its name and its next number can be guessed."""
    client, path = client_of(team), f"{URL}/subjects/sales.17/versions"
    status, body = send(client, path, schema=record(id="long"))
    assert (status, body["error_code"]) == (422, 42201)
    assert "as the subjects of captured datasets do" in body["message"]
    assert not SchemaSubject.objects.filter(name="sales.17").exists()
    registry.register("sales.17", record(id="long"), team=team, actor="tap", now=NOW, is_captured=True)
    assert send(client, path, schema=record(id="long", x="int"))[0] == 200, "its owners register versions then"
    assert send(client_of(given.team("pricing")), path, schema=record(id="long"))[0] == 403


@pytest.mark.parametrize("scopes", [["schemas:read"], ["schemas:write"]])
def test_a_token_needs_the_scope_and_may_be_a_password(team: Team, scopes: list[str]) -> None:
    user = given.user()
    given.member(user, team, Role.OWNER)
    _, secret = issue_token(
        name="producer",
        consumer="producer",
        team=team,
        created_by=user,
        scopes=scopes,
        now=clock.now(),
    )
    may_write = scopes == ["schemas:write"]
    for header in (f"Bearer {secret}", f"Basic {base64.b64encode(f'any:{secret}'.encode()).decode()}"):
        client = Client(headers={"Authorization": header})
        assert send(client, VERSIONS, schema=record(id="long"))[0] == (200 if may_write else 403)
        assert client.get(f"{URL}/subjects").status_code == (403 if may_write else 200)


@pytest.mark.parametrize("header", ["Basic", "Basic !!", "Basic " + base64.b64encode(b"lh_0:nope").decode()])
def test_a_password_that_is_no_token_opens_nothing(header: str) -> None:
    answer = Client(headers={"Authorization": header}).get(f"{URL}/subjects")
    assert answer.status_code == 401
    assert answer.json()["error_code"] == 401


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/subjects/nope/versions", 40401),
        ("/subjects/trips-value/versions/9", 40402),
        ("/subjects/trips-value/versions/0", 42202),
        ("/subjects/trips-value/versions/x", 42202),
        ("/subjects/trips-value/versions/99999999999", 42202),
        ("/schemas/ids/999999", 40403),
        ("/schemas/ids/99999999999999999999", 40403),
        ("/config/nope", 40401),
        ("/subjects?limit=x", 42201),
    ],
)
def test_errors_have_the_numbers_that_clients_know(team: Team, path: str, code: int) -> None:
    register(record(id="long"), team)
    answer = client_of(team).get(URL + path)
    assert (answer.status_code, answer.json()["error_code"]) == (code // 100, code)
    assert answer.json()["error"]["message"] == answer.json()["message"]


def test_names_come_in_pages(team: Team) -> None:
    for name in "cab":
        register(record(id="long"), team, name)
    client = client_of(team)
    pages = [
        client.get(f"{URL}/subjects", query).json()
        for query in ({}, {"limit": 2}, {"offset": 2}, {"limit": -1}, {"offset": -5})
    ]
    assert pages == [["a", "b", "c"], ["a", "b"], ["c"], ["a", "b", "c"], ["a", "b", "c"]]


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "string", "fields": 5},
        {"type": "bytes", "logicalType": "decimal"},
        {"type": "record", "name": "R", "aliases": 5, "fields": []},
        {"type": "array", "items": "int", "name": 7},
    ],
)
def test_properties_that_nobody_knows_stop_no_subject(team: Team, odd: dict[str, Any]) -> None:
    """Avro lets them be there; the versions after them are compared all the same."""
    for number in range(2):
        register(json.dumps(odd | {"doc": str(number)}), team)
    assert registry.find_version(SUBJECT).version == 2


def test_a_team_that_comes_second_has_not_registered(team: Team) -> None:
    """Two that register a new subject at once both have the right to, and one of them only gets it."""
    register(record(id="long"), team)
    with pytest.raises(Conflict, match="belongs to team flight-ops now"):
        register(record(id="long", x="int"), given.team("pricing"))


def test_a_subject_is_handed_over_by_an_administrator_of_its_team(team: Team) -> None:
    register(record(id="long"), team)
    other, path = given.team("pricing"), f"{URL}/subjects/{SUBJECT}/team"
    assert send(client_of(other, Role.ADMIN), path, "put", team="pricing")[0] == 403
    assert send(client_of(team), path, "put", team="pricing")[0] == 403
    administrator = client_of(team, Role.ADMIN)
    assert send(administrator, path, "put", team="nope")[0] == 404
    assert send(administrator, path, "put", team="pricing") == (200, {"team": "pricing"})
    assert send(client_of(other), VERSIONS, schema=record(id="long", x="int"))[0] == 200
    assert send(administrator, VERSIONS, schema=record(id="long", y="int"))[0] == 403


def test_a_rule_that_is_none_has_the_number_that_clients_know(team: Team) -> None:
    register(record(id="long"), team)
    status, body = send(client_of(team), f"{URL}/config/{SUBJECT}", "put", compatibility="SIDEWAYS")
    assert (status, body["error_code"]) == (422, 42203)
    assert "Write one of NONE, BACKWARD" in body["message"]
