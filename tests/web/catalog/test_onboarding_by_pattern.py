"""Tables of a captured connection by a pattern of their names: which are chosen, who may ask, and what is refused. A real server: tests/services/test_capture_onboarding.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from lakehub.accounts.models import Role
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.models import Connection, Dataset
from lakehub.catalog.onboarding import by_pattern
from lakehub.catalog.onboarding.bulk import OnboardingLine, OnboardingSelection, OnboardingStatus
from lakehub.catalog.onboarding.by_pattern import PatternRequest, TablePattern, requests_by_pattern
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.catalog.ports import CaptureFindings, CaptureSurvey, SurveyedTable
from lakehub.catalog.storages.sql.mysql import MySqlStorage
from lakehub.kernel.errors import Refused
from tests import factories as make
from tests.factories import NOW

pytestmark = pytest.mark.django_db
KEYS: Mapping[str, tuple[str, ...]] = {
    "sales_orders": ("id",),
    "sales_lines": ("order_id", "line"),
    "sales_log": (),
    "Sales_old": ("id",),
    "people": ("id",),
}
BULK = "/api/v1/datasets/bulk"


def survey_is(monkeypatch: pytest.MonkeyPatch, tables: Mapping[str, SurveyedTable]) -> None:
    def survey(url: str, choose: Callable[[Sequence[str]], Sequence[str]]) -> CaptureSurvey:
        return CaptureSurvey({table: tables[table] for table in choose(sorted(tables))})

    monkeypatch.setattr("lakehub.catalog.ports.survey_for_capture", survey)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Connection:
    tables = {name: SurveyedTable((*key, "n"), key, CaptureFindings()) for name, key in KEYS.items()}
    survey_is(monkeypatch, tables)
    monkeypatch.setattr(MySqlStorage, "tables", lambda storage, limit: sorted(KEYS))
    make.data_center("dc1")
    return make.connection("shop", "mysql://reader:hunter2@db.example.org:3306/ops", plugin="mysql")


def chosen(connection: Connection, text: str, **fields: Any) -> OnboardingSelection:
    facts = {"team": "flight-ops", "tier": 2, "data_centers": ["dc1"], **fields}
    return requests_by_pattern(PatternRequest(connection.name, text, **facts))


def test_tables_of_the_pattern_are_chosen_with_the_keys_that_they_have(shop: Connection) -> None:
    selection = chosen(shop, "sales_*, pe?ple", data_centers=[])
    requests = {request.table: (request.name, tuple(request.primary_key)) for request in selection.requests}
    assert requests == {
        "sales_lines": ("sales_lines", ("order_id", "line")),
        "sales_orders": ("sales_orders", ("id",)),
        "people": ("people", ("id",)),
    }
    facts = {(each.tier, each.team, each.ingested, tuple(each.data_centers)) for each in selection.requests}
    assert facts == {(2, "flight-ops", True, ("dc1",))}
    (line,) = selection.lines
    assert (line.name, line.result, "no primary key" in line.why["primary_key"]) == ("sales_log", "refused", True)


@pytest.mark.parametrize("object_name", ["sales_orders", "ops.sales_orders"])
def test_what_is_onboarded_already_is_left_as_it_is(shop: Connection, object_name: str) -> None:
    make.feed(make.dataset("bookings"), connection=shop, object=object_name)
    make.feed(make.dataset("sales_lines"))
    selection = chosen(shop, "sales_*s")
    lines = {line.name: (line.result, line.why) for line in selection.lines}
    assert lines["bookings"] == (OnboardingStatus.EXISTS, {})
    assert "Onboard `sales_lines` alone" in lines["sales_lines"][1]["name"]
    assert selection.requests == ()


def test_two_tables_that_would_have_one_name_are_not_one_dataset(
    shop: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = SurveyedTable(("id",), ("id",), CaptureFindings())
    survey_is(monkeypatch, {"Sales_old": plain, "sales_old": plain, "bulk": plain, "gone": plain, "a.b": plain})
    make.dataset("gone", offboarded_at=NOW)
    selection = chosen(shop, "*")
    assert [request.table for request in selection.requests] == ["Sales_old"]
    reasons = {line.name: line.why for line in selection.lines}
    assert "the name of another dataset, perhaps" in reasons["sales_old"]["name"]
    assert "an address of the REST API" in reasons["bulk"]["name"]
    assert "which was off-boarded" in reasons["gone"]["name"]
    assert "`a.b` has a dot" in reasons["a-b"]["table"]


def test_a_table_that_cannot_be_captured_says_why_before_anybody_confirms(
    shop: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = {
        "log": CaptureFindings(of_table=("`log` is MyISAM.",)),
        "odd": CaptureFindings(unfit={"place": "`place` is GEOMETRY."}),
        "at": CaptureFindings(uncertain_keys={"id": "timestamp"}),
        "names": CaptureFindings(),
    }
    columns = {"names": ("id", "a b")}
    tables = {name: SurveyedTable(columns.get(name, ("id", "place")), ("id",), each) for name, each in findings.items()}
    locked = SurveyedTable((), (), CaptureFindings(of_table=("It may be locked.",)))
    survey_is(monkeypatch, tables | {"locked": locked})
    selection = chosen(shop, "*")
    assert selection.requests == ()
    reasons = {line.name: line.why for line in selection.lines}
    assert reasons["locked"] == {"table": "It may be locked."}, "nothing about a key that nobody sees"
    assert (reasons["log"], reasons["odd"]) == ({"table": "`log` is MyISAM."}, {"table": "`place` is GEOMETRY."})
    assert "`id` is timestamp in the lake and cannot be a part" in reasons["at"]["primary_key"]
    assert "`a b`" in reasons["names"]["table"]


def test_a_server_that_is_away_or_cannot_be_tapped_ends_it(shop: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    survey = "lakehub.catalog.ports.survey_for_capture"
    monkeypatch.setattr(survey, Mock(side_effect=MetadataUnavailable("Nobody answers at db.example.org.")))
    with pytest.raises(Refused, match="Nothing was onboarded: Nobody answers"):
        chosen(shop, "*")
    monkeypatch.setattr(survey, Mock(return_value=CaptureSurvey({}, ("`binlog_format` is STATEMENT.",))))
    with pytest.raises(Refused) as refused:
        chosen(shop, "*")
    assert refused.value.fields == {"connection": "`binlog_format` is STATEMENT."}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sale_*", "No table matches `sale_*`. The account can see 5 tables."),
        ("sales_*, peple", "No table matches `peple`."),
        (" , ", "Name the tables"),
        ("*", "matches 5 tables; at most 4 can be onboarded at once"),
    ],
)
def test_a_pattern_of_none_or_of_too_many_is_refused(
    shop: Connection, text: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_pattern, "MAX_REQUESTS", 4)
    with pytest.raises(Refused) as refused:
        chosen(shop, text)
    assert why in refused.value.fields["tables"]


def test_a_pattern_has_its_bounds() -> None:
    """Each of a hundred thousand tables is compared with each of its names."""
    for text in ("a," * 250, "*a" * 250):
        assert not TablePattern(text).matches("a" * 60 + "b")
    with pytest.raises(Refused, match="has 502 characters; 500 are the most"):
        TablePattern("a," * 251)


def test_tables_that_are_read_by_a_cursor_are_not_onboarded_so() -> None:
    with pytest.raises(Refused) as refused:
        chosen(make.connection(), "*")
    assert "have no primary key that could be read" in refused.value.fields["connection"]


def test_only_who_may_read_the_connection_is_told_of_its_tables(shop: Connection) -> None:
    other = make.team("others")
    body = {"connection": "shop", "tables": "sales_log", "tier": 2, "team": "others"}
    answers = {}
    for name, memberships in {"stranger": [other], "owner": [other, shop.team]}.items():
        person, client = make.user(name), Client()
        for team in memberships:
            make.member(person, team, Role.OWNER)
        client.force_login(person)
        answers[name] = client.post(BULK, body, content_type="application/json")
    assert answers["stranger"].status_code == 403
    assert "sales_log" not in answers["stranger"].content.decode()
    (line,) = answers["owner"].json()
    assert (line["name"], line["result"]) == ("sales_log", "refused")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            {"tables": "*"},
            "Name the connection whose tables are captured. Name the team that owns them. Choose a tier from 0",
        ),
        ({"tables": "*", "lineage_of": "x"}, "one of the three"),
        ({"tables": "*", "connection": "shpo", "team": "flight-ops", "tier": 1}, "Did you mean `shop`?"),
        ({"tables": "x" * 501}, "500"),
    ],
)
def test_what_is_missing_is_told(shop: Connection, client: Client, body: dict[str, Any], why: str) -> None:
    make.member(person := make.user("ana"), shop.team, Role.OWNER)
    client.force_login(person)
    answer = client.post(BULK, body, content_type="application/json")
    assert 400 <= answer.status_code < 500
    assert why in answer.content.decode()
    assert "hunter2" not in answer.content.decode()
    assert not Dataset.objects.exists()


def test_the_page_shows_which_and_onboards_them_when_it_is_told_to(
    shop: Connection, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    make.member(person := make.user("ana"), shop.team, Role.OWNER)
    client.force_login(person)
    form = {"connection": "shop", "tables": "sales_*", "team": shop.team.name, "tier": "2", "data_centers": ["dc1"]}
    assert 'href="/onboard-tables?connection=shop"' in client.get("/onboarding?connection=shop").content.decode()
    text = client.get("/onboard-tables", form).content.decode()
    assert all(fact in text for fact in ("2 tables to onboard, 1 left out", "key order_id, line", "has no primary key"))
    for table in ("sales_lines", "sales_orders"):
        assert f'name="chosen" value="{table}" checked>' in text
    assert 'type="checkbox" disabled><span class="break">sales_log</span>' in text
    assert 'value="sales_log"' not in text
    assert not Dataset.objects.exists()
    asked = list[tuple[str, ...]]()

    def onboard(requests: Sequence[OnboardingRequest], **facts: Any) -> list[OnboardingLine]:
        asked.append(tuple(request.table for request in requests))
        return [OnboardingLine("sales_lines", OnboardingStatus.REFUSED, {"table": "<b>It</b> is `a view`."})]

    monkeypatch.setattr("frontend.screens.onboarding.many_views.onboard_many", onboard)
    text = client.post("/onboard-tables", {**form, "chosen": ["sales_lines"]}).content.decode()
    assert asked == [("sales_lines",)]  # another that has come since is not onboarded
    assert (">Result<" in text, "&lt;b&gt;It&lt;/b&gt; is" in text, "<b>It" in text) == (True, True, False)
    text = client.post("/onboard-tables", {**form, "chosen": ["sales_log"]}).content.decode()
    assert (asked[1:], "has no primary key" in text) == ([()], True)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (
            {"chosen": ["sales_lines", "<i>people"]},
            "No table that matches is called <code>&lt;i&gt;people</code>: look",
        ),
        ({"chosen": []}, "Choose at least one table"),
        ({"tables": "x", "chosen": ["sales_lines"]}, "No table matches"),
        ({"tier": "9", "chosen": ["sales_lines"]}, "Choose a tier"),
    ],
)
def test_the_page_onboards_nothing_of_a_form_that_is_wrong(
    shop: Connection, client: Client, wrong: dict[str, Any], why: str
) -> None:
    make.member(person := make.user("ana"), shop.team, Role.OWNER)
    client.force_login(person)
    form = {"connection": "shop", "tables": "sales_*", "team": shop.team.name, "tier": "2", "data_centers": ["dc1"]}
    answer = client.post("/onboard-tables", {**form, **wrong})
    assert (answer.status_code, why in answer.content.decode()) == (422, True)
    assert not Dataset.objects.exists()


def test_the_api_lists_before_it_onboards_and_refuses_what_is_not_listed(shop: Connection, client: Client) -> None:
    client.force_login(make.user("root", is_superuser=True))
    body = {"connection": "shop", "tables": "sales_*", "team": "flight-ops", "tier": 2}
    listed = client.post(f"{BULK}?check=1", body, content_type="application/json").json()
    assert [(line["table"], line["result"]) for line in listed] == [
        ("sales_lines", "ready"),
        ("sales_orders", "ready"),
        ("sales_log", "refused"),
    ]
    assert "no primary key" in listed[2]["why"]["primary_key"]
    answer = client.post(BULK, {**body, "chosen": ["sales_orders", "people"]}, content_type="application/json")
    assert (answer.status_code, "is called `people`" in answer.json()["error"]["fields"]["chosen"][0]) == (400, True)
    log = client.post(BULK, {**body, "chosen": ["sales_log"]}, content_type="application/json").json()
    assert [(line["name"], line["result"]) for line in log] == [("sales_log", "refused")]
    of_no_pattern: list[dict[str, Any]] = [{"lineage_of": "x", "chosen": ["x"]}, {"datasets": [{}], "chosen": []}]
    for wrong in of_no_pattern:
        assert client.post(BULK, wrong, content_type="application/json").status_code == 422
    assert client.post(f"{BULK}?check=1", {"datasets": [{}]}, content_type="application/json").status_code == 422
    assert not Dataset.objects.exists()


def test_the_page_is_for_owners_of_the_connections_team(shop: Connection, client: Client) -> None:
    make.member(person := make.user("eve"), make.team("others"), Role.OWNER)
    client.force_login(person)
    for team in ("others", shop.team.name):
        form = {"connection": "shop", "tables": "sales_*", "team": team, "tier": "2"}
        assert {client.get("/onboard-tables", form).status_code, client.post("/onboard-tables", form).status_code} == {
            403
        }
    make.member(person, shop.team, Role.OWNER)
    make.team("third")
    form = {"connection": "shop", "tables": "sales_*", "team": "third", "tier": "2"}
    assert {client.get("/onboard-tables", form).status_code, client.post("/onboard-tables", form).status_code} == {403}


@pytest.mark.parametrize(
    ("plugin", "url"),
    [
        ("sql", "sqlite:////tmp/shop.db"),
        ("kafka", "kafka://bus.example.org:9092"),
        ("schemaless", "mysql://reader:x@db.example.org:3306/ops"),
    ],
)
def test_it_is_of_databases_that_are_captured(client: Client, plugin: str, url: str) -> None:
    """No topic says its keys, and each would be looked at by its messages."""
    connection = make.connection("other", url, plugin=plugin)
    make.member(person := make.user("ana"), connection.team, Role.OWNER)
    client.force_login(person)
    answer = client.get("/onboard-tables", {"connection": connection.name}, follow=True)
    assert "no primary key that could be read" in answer.content.decode()
    body = {"tables": "*", "connection": connection.name, "team": connection.team.name, "tier": 1}
    answer = client.post(BULK, body, content_type="application/json")
    assert (answer.status_code, "one by one" in answer.content.decode()) == (422, True)
    assert client.get("/onboard-tables", {"connection": "lost"}).status_code == 302


def test_the_command_needs_what_tables_do_not_say(shop: Connection) -> None:
    for arguments in (["--tables", "*", "--lineage-of", "x"], []):
        with pytest.raises(CommandError, match="one of the three"):
            call_command("onboard", *arguments)


@pytest.mark.parametrize(
    ("wrong", "field", "why"),
    [
        ({"tier": "9"}, "tier", "Choose a tier from 0 (highest) to 5."),
        ({"team": "flight-opps"}, "team", "Did you mean `flight-ops`?"),
        ({"team": ""}, "team", "Name the team that owns them."),
        ({"data_centers": ["dc2"]}, "data_centers", "There is no data center `dc2`."),
        ({"tables": " , "}, "tables", "Name the tables"),
    ],
)
def test_page_api_and_command_refuse_alike(
    shop: Connection, client: Client, wrong: dict[str, Any], field: str, why: str
) -> None:
    client.force_login(make.user("root", is_superuser=True))
    form: dict[str, Any] = {
        "connection": "shop",
        "tables": "sales_*",
        "team": "flight-ops",
        "tier": "2",
        "data_centers": ["dc1"],
    }
    form |= wrong
    answer = client.post(BULK, form, content_type="application/json")
    assert (answer.status_code, why in answer.json()["error"]["fields"][field]) == (422, True)
    if field != "tables":  # the page takes that for a form that nobody has filled in yet
        page = client.get("/onboard-tables", form)
        text = re.sub(r"</?code.*?>", "", page.content.decode())
        assert (page.status_code, why.replace("`", "") in text) == (422, True)
    options = {"connection": "--connection", "tables": "--tables", "team": "--team", "tier": "--tier"}
    arguments = [argument for name, option in options.items() for argument in (option, form[name])]
    with pytest.raises(CommandError, match=re.escape(why)):
        call_command("onboard", *arguments, "--data-center", form["data_centers"][0])
    assert not Dataset.objects.exists()
