"""Schemas: a list of subjects, one with its versions and columns, what differs between two, and a proposal that is looked at before it is registered."""

from __future__ import annotations

import html as entities
import json
import re
from typing import Any

import pytest
from django.test import Client

from ingestion.captures.records import topic_of
from ingestion.models import Finding, SchemaSubject, SchemaVersion
from ingestion.schemas import registry
from ingestion.schemas.avro_text import MAX_BYTES
from lakehub import clock
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.models import Dataset
from tests import factories as make
from tests.fleet import BOOKING_FIELDS
from tests.page_forms import PageForms

COLOURS = {"type": "enum", "name": "Colour", "symbols": ["RED"]}
SUBJECT = "/schemas/bookings-value"
HOSTILE = "</textarea><script>alert(1)</script>"


def text_of(answer: Any) -> str:
    return entities.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", answer.content.decode())))


def booking(*more: dict[str, Any], **changes: Any) -> str:
    """The newest version of the fleet with other columns."""
    return json.dumps({"type": "record", "name": "Booking", "fields": [*BOOKING_FIELDS[-1], *more], **changes})


def added(name: str = "tip", **more: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", "long"], "default": None, **more}


def audited(action: str) -> list[Any]:
    return [entry.detail for entry in AuditEntry.objects.filter(action=action)]


@pytest.fixture
def stranger(flights: Dataset) -> Client:
    """Owner of another team."""
    person, client = make.user("stranger"), Client()
    make.member(person, make.team("others"), Role.OWNER)
    client.force_login(person)
    return client


class TestList:
    def test_a_subject_says_what_it_is(self, page: Client, flights: Dataset) -> None:
        html = page.get("/schemas").content.decode()
        row = re.search(r"<tr data-row>(?:(?!</tr>).)*bookings-value.*?</tr>", html, re.DOTALL)
        assert row is not None
        cells = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", row[0]))
        assert "bookings-value flight-ops Backward 3 4 14 Nov 14:32 by ana" in re.sub(r" +", " ", cells)
        assert f'Captured from <a href="/datasets/{flights.name}">' in html

    def test_a_captured_table_has_the_columns_of_its_row(self, page: Client, flights: Dataset) -> None:
        answer = page.get(f"/schemas?name={topic_of(flights)}")
        assert re.search(r'data-label="Columns">3<', answer.content.decode())

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("name=BOOK", ["bookings-value"]),
            ("team=fleet", ["seats"]),
            ("rule=full", ["seats"]),
            ("rule=full&team=flight-ops", []),
            ("mine=1&name=a", ["bookings-value", "seats"]),
            ("rule=nonsense&name=seats", ["seats"]),
        ],
    )
    def test_filters_narrow_it(self, page: Client, query: str, names: list[str]) -> None:
        make.schema_version("seats", "long", owner=make.team("fleet"))
        make.schema_version("apart", "long", owner=make.team("others"))
        SchemaSubject.objects.filter(name="seats").update(compatibility="full")
        answer = page.get(f"/schemas?{query}")
        assert [
            name for name in ("apart", "bookings-value", "seats") if f'/schemas/{name}"' in answer.content.decode()
        ] == names
        assert ("Nothing matches" in text_of(answer)) == (not names)

    def test_it_comes_in_pages_and_alone_as_a_live_part(self, page: Client) -> None:
        for number in range(60):
            make.schema_version(f"s{number:02}", "long")
        assert "Page 1 of 2" in text_of(page.get("/schemas"))
        assert "bookings-value" not in text_of(page.get("/schemas?page=2"))
        assert "<html" not in page.get("/schemas", headers={"X-Fragment": "list"}).content.decode()

    def test_none_teaches_the_first(self, page: Client, guest: Client) -> None:
        SchemaSubject.objects.all().delete()
        assert "Add the first" in text_of(page.get("/schemas"))
        text = text_of(guest.get("/schemas"))
        assert "No subjects yet" in text
        assert "Add" not in text.replace("Added", "")

    def test_a_deprecated_newest_version_says_why(self, page: Client) -> None:
        make.schema_version("seats", "long", deprecated_at=make.NOW, deprecated_why=HOSTILE)
        html = page.get("/schemas").content.decode()
        assert "Deprecated" in html
        assert HOSTILE not in html


class TestLake:
    def test_a_copy_says_which_version_it_has_and_a_proposal_what_it_changes(
        self, page: Client, flights: Dataset
    ) -> None:
        subject, copy = f"/schemas/{topic_of(flights)}", make.copy_of(flights)
        assert "no version yet" in text_of(page.get(subject))
        make.commit(copy, schema_version=1)
        assert "the lake table has version 1" in text_of(page.get(subject))
        Finding.objects.create(
            copy=copy,
            kind="schema_incompatible",
            start=make.NOW,
            end=make.NOW,
            raised_at=make.NOW,
            detail={"message": HOSTILE},
        )
        assert HOSTILE not in page.get(subject).content.decode()
        schema = json.loads(registry.find_version(topic_of(flights)).text)
        row = next(each for each in schema["fields"] if each["name"] == "row")["type"]["fields"]
        row.append({"name": "tip", "type": ["null", "double"], "default": None})
        text = text_of(page.post(f"{subject}/propose", {"schema": json.dumps(schema), "action": "check"}))
        assert f"In the lake table of {flights.name} in dc1, dc2, within a minute:" in text
        assert "adds the column tip (double), which is null until the source has it" in text


class TestSubject:
    def test_the_newest_version_is_shown_with_its_columns(self, page: Client) -> None:
        text = text_of(page.get(SUBJECT))
        assert "Columns of version 34 columns" in text
        assert "A seat that was sold." in text
        assert "double, may be null null In euros" in text
        assert "stops[].airport" in text
        assert '"name": "Booking"' in text

    def test_an_older_version_says_why_it_is_deprecated(self, page: Client) -> None:
        text = text_of(page.get(f"{SUBJECT}?version=2"))
        assert "Version 2 is deprecated since 13:32: Fares were rounded." in text
        assert "fare float" in text

    def test_of_a_captured_table_the_row_is_shown_and_the_metadata_folded(self, page: Client, flights: Dataset) -> None:
        answer = page.get(f"/schemas/{topic_of(flights)}")
        columns, _, metadata = answer.content.decode().partition("Metadata of each change")
        assert "<strong>origin</strong>" in columns
        assert "row_key" not in columns
        assert "<strong>row_key</strong>" in metadata
        assert f'<a href="/datasets/{flights.name}">' in columns

    @pytest.mark.parametrize("query", ["version=9", "version=0", "version=x", "version=²", f"version={'9' * 400}"])
    def test_a_version_that_is_not_there_is_not_shown(self, page: Client, query: str) -> None:
        assert page.get(f"{SUBJECT}?{query}").status_code == 404

    def test_an_unknown_subject_names_the_nearest(self, page: Client) -> None:
        answer = page.get("/schemas/booking-value")
        assert answer.status_code == 404
        assert "Did you mean bookings-value?" in text_of(answer).replace("`", "")

    def test_what_people_write_is_text(self, page: Client) -> None:
        column = added("x" * 300, doc=HOSTILE, aliases=[HOSTILE])
        make.schema_version(
            "odd", {"type": "record", "name": "Odd", "fields": [column], "doc": HOSTILE}, registered_by=HOSTILE
        )
        make.schema_version("odd", {"type": "record", "name": "Odd", "fields": [], "doc": f"{HOSTILE}!"})
        for path in ("/schemas/odd?version=1", "/schemas/odd/diff", "/schemas/odd/propose", "/schemas"):
            assert HOSTILE not in page.get(path).content.decode(), path

    def test_what_is_no_record_has_a_page_whatever_properties_it_has(self, page: Client) -> None:
        for number, schema in enumerate(
            (["null", "long"], "string", {**COLOURS, "fields": "abc"}, {**COLOURS, "doc": [1]})
        ):
            make.schema_version(f"odd{number}", schema)
            for path in ("", "/diff", "/propose"):
                assert page.get(f"/schemas/odd{number}{path}").status_code == 200
        assert "Avro: enum of RED" in text_of(page.get("/schemas/odd2"))

    def test_many_versions_come_in_pages(self, page: Client) -> None:
        for number in range(45):
            make.schema_version("busy", {"type": "record", "name": "Busy", "fields": [], "at": number})
        text = text_of(page.get("/schemas/busy"))
        assert "Version 45 is the newest of 45" in text
        assert "Page 1 of 3" in text
        assert "Version 1 14" not in text

    def test_a_viewer_sees_no_control(self, guest: Client) -> None:
        text = text_of(guest.get(SUBJECT))
        assert "To register or deprecate versions you need to be owner or admin of team flight-ops." in text
        assert "Change the rule" not in text
        assert "Deprecate version" not in text


class TestChanges:
    def test_two_versions_are_compared_column_by_column(self, page: Client) -> None:
        answer = page.get(f"{SUBJECT}/diff?from=1&to=3")
        text = text_of(answer)
        assert "2 columns added" in text
        assert "fare + Added" in re.sub(r"\s+", " ", text).replace("+Added", "+ Added")
        assert "array<struct<airport:string>>" in text

    def test_the_newest_is_compared_with_the_one_before(self, page: Client) -> None:
        text = text_of(page.get(f"{SUBJECT}/diff"))
        assert "1 column added, 1 changed" in text
        assert "float, may be null → to double, may be null" in text

    def test_a_version_compared_with_itself_is_the_same(self, page: Client) -> None:
        assert "The two are the same schema." in text_of(page.get(f"{SUBJECT}/diff?from=2&to=2"))

    def test_a_first_version_has_nothing_before_it(self, page: Client) -> None:
        make.schema_version("plain", "long")
        assert page.get("/schemas/plain/diff").status_code == 200

    @pytest.mark.parametrize("query", ["from=9", "to=9", "from=x", "to=-1", "from=1&to=9" + "9" * 30])
    def test_a_version_that_is_not_there_is_not_compared(self, page: Client, query: str) -> None:
        assert page.get(f"{SUBJECT}/diff?{query}").status_code == 404


class TestRule:
    def test_an_owner_changes_it_with_a_line_in_the_audit_log(self, page: Client) -> None:
        answer = page.post(f"{SUBJECT}/rule", {"compatibility": "full_transitive"}, follow=True)
        assert "The rule is Full, all versions." in text_of(answer)
        assert audited("set schema rule") == [{"before": "backward", "after": "full_transitive"}]

    def test_a_rule_that_is_none_changes_nothing(self, page: Client) -> None:
        assert "'sideways' is not a rule" in text_of(
            page.post(f"{SUBJECT}/rule", {"compatibility": "sideways"}, follow=True)
        )
        assert SchemaSubject.objects.get(name="bookings-value").compatibility == "backward"


class TestDeprecation:
    def test_it_needs_a_reason_and_keeps_it(self, page: Client) -> None:
        answer = page.post(f"{SUBJECT}/versions/3/deprecate", {"why": f" {HOSTILE} "}, follow=True)
        assert "Version 3 is deprecated." in text_of(answer)
        assert HOSTILE not in answer.content.decode()
        assert SchemaVersion.objects.get(subject__name="bookings-value", version=3).deprecated_why == HOSTILE
        assert audited("deprecate schema") == [{"version": 3, "why": HOSTILE}]

    @pytest.mark.parametrize(
        ("why", "problem"), [("  ", "Say why"), ("x" * 2_001, "has 2,001 characters. Write 2,000")]
    )
    def test_a_reason_that_is_refused_stays_in_the_form(self, page: Client, why: str, problem: str) -> None:
        answer = page.post(f"{SUBJECT}/versions/3/deprecate", {"why": why})
        assert answer.status_code == 422
        assert problem in text_of(answer)
        assert f">{why}</textarea>" in answer.content.decode()
        assert not SchemaVersion.objects.get(subject__name="bookings-value", version=3).deprecated_at

    def test_a_version_that_is_not_there_is_not_found(self, page: Client) -> None:
        assert page.post(f"{SUBJECT}/versions/9/deprecate", {"why": "Odd"}).status_code == 404


class TestProposal:
    def test_the_form_begins_with_the_newest_version(self, page: Client) -> None:
        form = _form(page.get(f"{SUBJECT}/propose"), "propose")
        schema = dict(form.fields)["schema"]
        assert json.loads(schema) == registry.schema_of(registry.find_version("bookings-value"))

    def test_what_it_changes_is_shown_and_nothing_is_stored(self, page: Client) -> None:
        answer = page.post(f"{SUBJECT}/propose", {"schema": booking(added())})
        text = text_of(answer)
        assert answer.status_code == 200
        assert "May followversion 3, by the rule backward." in text
        assert "1 column added" in text
        assert registry.find_version("bookings-value").version == 3
        assert not AuditEntry.objects.filter(subject="schema:bookings-value").exists()

    def test_all_refusals_are_shown_in_words_and_what_was_typed_stays(self, page: Client) -> None:
        proposed = booking(
            {"name": "seat_class", "type": "int"},
            fields=[{"name": "id", "type": "string"}, {"name": "seat_class", "type": "int"}],
        )
        answer = page.post(f"{SUBJECT}/propose", {"schema": proposed})
        text = text_of(answer)
        assert answer.status_code == 422
        assert "It may not follow version 3 by the rule backward. 2 reasons:" in text
        assert "id was written as long, and is read as string." in text
        assert "seat_class is not there in what was written, and has no default." in text
        assert "1 column added, 3 removed, 1 changed" in text
        assert dict(_form(answer, "propose").fields)["schema"].strip() == proposed
        assert "Register it" not in text

    def test_then_it_is_registered_as_it_was_looked_at(self, page: Client) -> None:
        looked_at = page.post(f"{SUBJECT}/propose", {"schema": booking(added(doc='1 < 2\n& "3"'))})
        form = _form(looked_at, "register")
        answer = page.post(f"{SUBJECT}/register", form.body(("", "")), follow=True)
        assert "Version 4 is registered" in text_of(answer)
        newest = registry.find_version("bookings-value")
        assert (newest.version, newest.registered_by) == (4, "ines")
        assert json.loads(newest.text)["fields"][-1]["doc"] == '1 < 2\n& "3"'
        assert audited("register schema") == [{"version": 4, "id": newest.pk}]

    def test_a_version_that_came_in_between_is_looked_at_first(self, page: Client) -> None:
        register(booking(added("other")))
        answer = page.post(f"{SUBJECT}/register", {"schema": booking(added()), "after": 3})
        assert answer.status_code == 422
        assert "Nothing was registered. Version 4 of bookings-value was registered in the meantime" in text_of(answer)
        assert "1 column added, 1 removed" in text_of(answer)
        assert registry.find_version("bookings-value").version == 4

    @pytest.mark.parametrize("after", ["", "x", "-1", "9" * 40])
    def test_what_nobody_looked_at_is_not_registered(self, page: Client, after: str) -> None:
        answer = page.post(f"{SUBJECT}/register", {"schema": booking(added()), "after": after})
        assert answer.status_code == 422
        assert "Look at what the schema changes before you register it." in text_of(answer)

    def test_the_rule_holds_when_it_is_registered_too(self, page: Client) -> None:
        answer = page.post(f"{SUBJECT}/register", {"schema": booking({"name": "tip", "type": "int"}), "after": 3})
        assert answer.status_code == 422
        assert "Nothing was registered. The schema may not follow version 3" in text_of(answer)
        assert registry.find_version("bookings-value").version == 3

    def test_a_schema_that_is_there_already_says_so(self, page: Client) -> None:
        older = SchemaVersion.objects.get(subject__name="bookings-value", version=1).text
        assert "This schema is version 1 already." in text_of(page.post(f"{SUBJECT}/propose", {"schema": older}))
        answer = page.post(f"{SUBJECT}/register", {"schema": older, "after": 3}, follow=True)
        assert "That schema is version 1 already. Nothing was registered." in text_of(answer)

    @pytest.mark.parametrize(
        ("schema", "problem"),
        [
            ("", "The schema is not JSON"),
            ("{", "The schema is not JSON"),
            ('{"type": "record"}', "not an Avro schema"),
            ("[" * 3_000, "nested deeper than 60 levels"),
            (json.dumps({"type": "record", "name": "Big", "fields": [], "doc": "x" * MAX_BYTES}), "more than 512 KiB"),
        ],
    )  # fmt: skip
    def test_what_is_no_schema_is_explained_and_kept(self, page: Client, schema: str, problem: str) -> None:
        for address in ("propose", "register"):
            answer = page.post(f"{SUBJECT}/{address}", {"schema": schema, "after": 3})
            assert answer.status_code == 422
            assert problem in text_of(answer)
            assert dict(_form(answer, "propose").fields)["schema"].strip() == schema
        assert registry.find_version("bookings-value").version == 3

    def test_schemas_whose_types_name_each_other_without_end_are_refused_in_words(self, page: Client) -> None:
        make.schema_version("chains", json.loads(chain("d")))
        answer = page.post("/schemas/chains/propose", {"schema": chain("e")})
        assert answer.status_code == 422
        assert "name each other in too long a chain to be compared" in text_of(answer)

    def test_everybody_may_look_and_owners_register(self, stranger: Client, guest: Client) -> None:
        for client in (stranger, guest):
            text = text_of(client.post(f"{SUBJECT}/propose", {"schema": booking(added())}))
            assert "To register it you need to be owner or admin of team flight-ops." in text
            assert "Register it as" not in text
            assert client.post(f"{SUBJECT}/register", {"schema": booking(added()), "after": 3}).status_code == 403
            assert client.post(f"{SUBJECT}/rule", {"compatibility": "none"}).status_code == 403
            assert client.post(f"{SUBJECT}/versions/3/deprecate", {"why": "Odd"}).status_code == 403
        assert registry.find_version("bookings-value").version == 3

    def test_a_form_of_another_site_changes_nothing(self, page: Client) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.cookies = page.cookies
        for path in ("register", "rule", "versions/3/deprecate", "propose"):
            assert (
                strict.post(f"{SUBJECT}/{path}", {"schema": booking(added()), "after": 3, "why": "x"}).status_code
                == 403
            )

    def test_each_form_carries_its_token(self, page: Client) -> None:
        answers = [page.get(path) for path in (SUBJECT, f"{SUBJECT}/propose", "/new-schema")]
        answers.append(page.post(f"{SUBJECT}/propose", {"schema": booking(added())}))
        forms = [
            form for answer in answers for form in PageForms(answer.content.decode()).forms if form.method == "post"
        ]
        tokens = [
            "csrfmiddlewaretoken" in dict(form.fields) for form in forms if form.action.startswith(("/schemas", "/new"))
        ]
        assert len(tokens) == 6
        assert all(tokens)

    def test_of_a_captured_table_it_says_when_the_lake_has_a_column(self, page: Client, flights: Dataset) -> None:
        text = text_of(page.get(f"/schemas/{topic_of(flights)}/propose"))
        assert "A column that you register here is in the lake within a minute" in text


class TestAddedColumn:
    @pytest.mark.parametrize(
        ("column", "field"),
        [
            ({"column_type": "long"}, {"name": "tip", "type": "long"}),
            ({"column_type": "long", "column_nullable": "on"}, {"name": "tip", "type": ["null", "long"], "default": None}),
            ({"column_type": "int", "column_default": "7", "column_doc": "In euros"}, {"name": "tip", "type": "int", "default": 7, "doc": "In euros"}),
            ({"column_type": "string", "column_default": "7", "column_nullable": "on"}, {"name": "tip", "type": ["string", "null"], "default": "7"}),
            ({"column_type": "timestamp"}, {"name": "tip", "type": {"type": "long", "logicalType": "timestamp-micros"}}),
            ({"column_type": "boolean", "column_default": "true"}, {"name": "tip", "type": "boolean", "default": True}),
            ({"column_type": "double", "column_default": "0.5"}, {"name": "tip", "type": "double", "default": 0.5}),
        ],
    )  # fmt: skip
    def test_a_column_is_added_to_what_was_typed(
        self, page: Client, column: dict[str, str], field: dict[str, Any]
    ) -> None:
        body = {"schema": booking(), "action": "add", "column_name": "tip", **column}
        answer = page.post(f"{SUBJECT}/propose", body)
        shown = dict(_form(answer, "propose").fields)
        assert json.loads(shown["schema"])["fields"][-1] == field
        assert shown["column_name"] == ""
        assert "1 column added" in text_of(answer)

    @pytest.mark.parametrize(
        ("column", "problem"),
        [
            ({"column_name": ""}, "'' is not a name"),
            ({"column_name": "a b"}, "'a b' is not a name"),
            ({"column_name": HOSTILE}, "is not a name"),
            ({"column_name": "seat"}, "There is a column seat already."),
            ({"column_type": "strin"}, "Did you mean string?"),
            ({"column_type": "int", "column_default": "x"}, "'x' is not a value of type int"),
            ({"column_type": "int", "column_default": str(2**31)}, "is not a value of type int"),
            ({"column_type": "int", "column_default": "true"}, "is not a value of type int"),
            ({"column_type": "double", "column_default": "NaN"}, "is not a value of type double"),
            ({"column_type": "date", "column_default": "2026-11-16"}, "Write the default of a column of type date into the JSON"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_added_is_said_by_its_field(
        self, page: Client, column: dict[str, str], problem: str
    ) -> None:
        body = {"schema": booking(), "action": "add", "column_name": "tip", "column_type": "long", **column}
        answer = page.post(f"{SUBJECT}/propose", body)
        assert answer.status_code == 422
        assert problem in text_of(answer).replace("`", "")
        assert HOSTILE not in answer.content.decode()
        shown = dict(_form(answer, "propose").fields)
        assert shown["schema"].strip() == booking()
        assert shown["column_name"] == body["column_name"]

    def test_all_that_is_wrong_is_said_at_once(self, page: Client) -> None:
        body = {"schema": booking(), "action": "add", "column_name": "a b", "column_type": "strin"}
        text = text_of(page.post(f"{SUBJECT}/propose", body))
        assert "'a b' is not a name" in text
        assert "Did you mean string?" in text.replace("`", "")

    def test_of_a_captured_table_it_is_added_to_the_row(self, page: Client, flights: Dataset) -> None:
        topic = topic_of(flights)
        newest = registry.find_version(topic).text
        body = {
            "schema": newest,
            "action": "add",
            "column_name": "gate",
            "column_type": "string",
            "column_nullable": "on",
        }
        assert "row.gate" in text_of(page.post(f"/schemas/{topic}/propose", body))

    def test_only_a_record_takes_one(self, page: Client) -> None:
        make.schema_version("plain", "long")
        body = {"schema": '"long"', "action": "add", "column_name": "a", "column_type": "int"}
        assert "Only a record has columns" in text_of(page.post("/schemas/plain/propose", body))


class TestNewSubject:
    def test_it_is_looked_at_and_registered(self, page: Client) -> None:
        body = {"subject": "seats-value", "team": "fleet", "schema": booking()}
        looked_at = page.post("/new-schema", body)
        assert "It can be the first version of seats-value." in text_of(looked_at)
        answer = page.post("/new-schema/register", _form(looked_at, "register").body(("", "")), follow=True)
        assert "Version 1 is registered" in text_of(answer)
        assert SchemaSubject.objects.get(name="seats-value").team.name == "fleet"
        assert audited("add schema subject") == [{"team": "fleet"}]

    @pytest.mark.parametrize("name", ["", "a b", "a/b", "..", ".", "x" * 201, HOSTILE])
    def test_a_name_that_none_can_have_is_explained(self, page: Client, name: str) -> None:
        for address in ("/new-schema", "/new-schema/register"):
            answer = page.post(address, {"subject": name, "team": "fleet", "schema": booking(), "after": 0})
            assert answer.status_code == 422
            assert "is not a subject" in text_of(answer)
            assert HOSTILE not in answer.content.decode()
        assert not SchemaSubject.objects.filter(name=name).exists()

    def test_a_name_that_is_taken_is_not_registered_twice(self, page: Client) -> None:
        body = {"subject": "bookings-value", "team": "flight-ops", "schema": booking(added()), "after": 0}
        assert "There is a subject bookings-value already" in text_of(page.post("/new-schema", body))
        assert page.post("/new-schema/register", body).status_code == 422
        assert registry.find_version("bookings-value").version == 3

    def test_it_needs_a_team_in_which_one_may_onboard(self, page: Client, guest: Client, stranger: Client) -> None:
        body = {"subject": "seats-value", "team": "fleet", "schema": booking(), "after": 0}
        assert guest.get("/new-schema").status_code == guest.post("/new-schema", body).status_code == 403
        assert stranger.get("/new-schema").status_code == 200
        assert stranger.post("/new-schema/register", body).status_code == 403
        assert "Choose a team" in text_of(page.post("/new-schema/register", {**body, "team": "nobody"}))
        assert not SchemaSubject.objects.filter(name="seats-value").exists()


def _form(answer: Any, ending: str) -> Any:
    """The form that is sent to an address with this word in it."""
    forms = PageForms(answer.content.decode()).forms
    return next(form for form in forms if ending in form.action.rsplit("/", 1)[-1] or form.action.endswith(f"{ending}"))


def register(text: str) -> SchemaVersion:
    subject = registry.find_subject("bookings-value")
    return registry.register(subject.name, text, team=subject.team, actor="ana", now=clock.now())


def chain(prefix: str) -> str:
    structs: list[Any] = [{"type": "record", "name": "A0", "fields": []}]
    structs += [
        {"type": "record", "name": f"A{number}", "fields": [{"name": "f", "type": f"A{number - 1}"}]}
        for number in range(1, 2_000)
    ]
    fields = [
        {"name": f"{prefix}{number}", "type": ["null", struct], "default": None}
        for number, struct in enumerate(structs)
    ]
    return json.dumps({"type": "record", "name": "Chain", "fields": [*fields, {"name": "x", "type": "A1999"}]})
