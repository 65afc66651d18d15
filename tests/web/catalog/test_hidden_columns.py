"""Columns of a captured table that nobody is to see: named at onboarding and later, checked against the real table, audited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.datasets import changes
from lakehub.catalog.metadata import ColumnMetadata, ColumnType, KeyEvidence, NewestValues, TableMetadata
from lakehub.catalog.models import Dataset, Feed
from lakehub.catalog.ports import CaptureFindings
from lakehub.catalog.storages.sql.mysql import MySqlStorage
from tests import factories as make
from tests.factories import NOW

pytestmark = pytest.mark.django_db
TYPES = {
    "id": ColumnType.INTEGER,
    "code": ColumnType.STRING,
    "day": ColumnType.DATE,
    "email": ColumnType.STRING,
    "phone": ColumnType.STRING,
    "born": ColumnType.DATE,
    "host": ColumnType.STRING,
    "salary": ColumnType.INTEGER,
    "a b": ColumnType.STRING,
    " lead": ColumnType.STRING,
    "ä`😀": ColumnType.STRING,
    "x" * 64: ColumnType.STRING,
}
UNFIT = ["a b", " lead", "ä`😀"]
"""What no table of the lake can have."""
GENERATED = {"host": ("code", "salary")}
APPLICATION = {
    "name": "people", "team": "flight-ops", "tier": 3, "connection": "tapped", "table": "people", "data_centers": ["dc1"],
    "primary_key": ["id"], "partition_column": "day", "grain": "day",
    "columns_left_out": UNFIT,
}  # fmt: skip


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch) -> Client:
    """Of a table that is captured from a server which nobody asks."""
    table = TableMetadata(tuple(ColumnMetadata(name, type_) for name, type_ in TYPES.items()), ("id", "code"))
    monkeypatch.setattr(MySqlStorage, "describe", lambda self, name: table)
    monkeypatch.setattr(MySqlStorage, "newest_values", _no_values)
    monkeypatch.setattr(MySqlStorage, "sample_rows", lambda self, name, described, limit: ())
    monkeypatch.setattr(MySqlStorage, "key_evidence", lambda self, name, key: KeyEvidence(1, 1, 0))
    monkeypatch.setattr(
        "lakehub.catalog.ports.capture_findings",
        lambda url, table="", has_cells=False: CaptureFindings(generated=GENERATED),
    )
    make.connection("tapped", "mysql://reader:hunter2@db/ops", plugin="mysql")
    make.connection("by-cursor", "mysql+pymysql://reader:hunter2@db/ops", plugin="sql")
    make.data_center()
    person = make.user("olga")
    make.member(person, make.team(), Role.OWNER)
    client = Client()
    client.force_login(person)
    return client


def _no_values(self: MySqlStorage, name: str, columns: Any, limit: int) -> Any:
    assert not {*columns} & {"email", "born", "phone"}, "nobody is to see them"
    return NewestValues()


def onboard(client: Client, **fields: Any) -> Any:
    return client.post("/api/v1/datasets", {**APPLICATION, **fields}, content_type="application/json")


def patch(client: Client, **fields: Any) -> Any:
    return client.patch("/api/v1/datasets/people", fields, content_type="application/json")


def test_they_are_named_at_onboarding_and_audited(owner: Client) -> None:
    answer = onboard(owner, columns_hashed=["email"], columns_masked=["phone", "born"])
    assert answer.status_code == 201, answer.content
    shown = answer.json()
    assert (shown["columns_left_out"], shown["columns_hashed"]) == (UNFIT, ["email"])
    assert shown["columns_masked"] == ["phone", "born"]
    types = {column["name"]: column["type"] for column in shown["columns"]}
    assert not types.keys() & set(UNFIT)
    assert types["email"] == "string"
    detail = AuditEntry.objects.get(action="onboard").detail
    assert (detail["columns_hashed"], detail["columns_left_out"]) == (["email"], UNFIT)


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"columns_masked": ["mail"]}, "columns_masked", "There is no column `mail` to be masked. Did you mean `email`?"),
        ({"columns_hashed": ["EMAIL"]}, "columns_hashed", "There is no column `EMAIL` to be hashed. Did you mean `email`?"),
        ({"columns_masked": ["id"]}, "columns_masked", "`id` is a part of the primary key and cannot be masked: name another column"),
        ({"record_key": ["email"], "columns_hashed": ["email"]}, "columns_hashed", "`email` is a part of the record key and cannot be hashed"),
        ({"columns_left_out": [*UNFIT, "code"]}, "columns_left_out", "`code` is a part of the primary key and cannot be left out"),
        ({"columns_hashed": ["day"]}, "columns_hashed", "`day` is a column of the partition and cannot be hashed"),
        ({"event_time": "born", "columns_masked": ["born"]}, "columns_masked", "`born` is the event time and cannot be masked"),
        ({"columns_hashed": ["email"], "columns_masked": ["email"]}, "columns_masked", "`email` is hashed and masked: name it once."),
        ({"columns_masked": ["email", "email"]}, "columns_masked", "`email` is masked twice: name it once."),
        ({"columns_hashed": ["salary"]}, "columns_hashed", "`host` is generated from `salary`, which is hashed, and would show it. Name it in one of the lists"),
        ({"columns_left_out": ["a b"]}, "table", "cannot hold the columns"),
        ({"connection": "by-cursor", "columns_masked": ["email"]}, "columns_masked", "`people` is not a table that is captured from a connection with the plug-in `mysql`, so its column `email` cannot be masked"),
        ({"ingested": False, "columns_masked": ["email"]}, "columns_masked", "`people` is not a table that is captured"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name_value_and_remedy(
    owner: Client, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], field: str, says: str
) -> None:
    monkeypatch.setattr("lakehub.catalog.storages.sql.SqlStorage.describe", MySqlStorage.describe)
    monkeypatch.setattr("lakehub.catalog.storages.sql.SqlStorage.key_evidence", MySqlStorage.key_evidence)
    monkeypatch.setattr("lakehub.catalog.storages.sql.SqlStorage.newest_values", MySqlStorage.newest_values)
    answer = onboard(owner, **fields)
    assert answer.status_code == 422, answer.content
    assert says in answer.json()["error"]["fields"][field]
    assert not Dataset.objects.exists()


def test_nobody_looks_at_their_values_for_a_proposal(owner: Client) -> None:
    """Which the fixture asserts."""
    whole = {"partition_column": "", "grain": "none"}
    assert onboard(owner, columns_hashed=["email"], columns_masked=["phone", "born"], **whole).status_code == 201


@pytest.mark.parametrize(("value", "code"), [("email", 400), ([["email"]], 400), (["x" * 65], 400), ([""], 400)])
def test_what_is_no_list_of_names_is_refused(owner: Client, value: object, code: int) -> None:
    answer = onboard(owner, columns_masked=value)
    assert (answer.status_code, "columns_masked" in answer.json()["error"]["fields"]) == (code, True), answer.content


def test_a_change_is_checked_stored_and_audited_and_what_is_not_named_stays(owner: Client) -> None:
    onboard(owner, columns_hashed=["email"])
    assert patch(owner, columns_masked=["salary", "host"], columns_left_out=[*UNFIT, "born"]).status_code == 200
    feed = Feed.objects.get()
    assert (feed.columns_hashed, feed.columns_masked) == (["email"], ["salary", "host"])
    assert "born" not in {column["name"] for column in Dataset.objects.get().columns}
    detail = AuditEntry.objects.order_by("-pk")[0].detail
    assert detail["was"] == {"columns_masked": [], "columns_left_out": UNFIT}
    assert detail["becomes"] == {"columns_masked": ["salary", "host"], "columns_left_out": [*UNFIT, "born"]}
    patch(owner, feed_options={"overlap_s": 5})
    feed.refresh_from_db()
    assert feed.columns_masked == ["salary", "host"], "an option of the feed shows nothing"


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"columns_masked": ["mail"]}, "columns_masked", "There is no column `mail`"),
        ({"columns_left_out": ["id"]}, "columns_left_out", "`id` is a part of the record key"),
        ({"columns_left_out": ["email"]}, "columns_hashed", "`email` is left out and hashed: name it once."),
        ({"columns_hashed": ["email", "salary"]}, "columns_hashed", "`salary` is integer in the lake, and would be a text. Mask it or leave it out"),
        ({"columns_masked": ["salary"]}, "columns_masked", "`host` is generated from `salary`"),
        ({"primary_key": ["email"]}, "columns_hashed", "`email` is a part of the primary key"),
        ({"event_time": "born"}, "columns_masked", "`born` is the event time"),
        ({"partition_column": "born", "grain": "day"}, "columns_masked", "`born` is a column of the partition"),
        ({"connection": "by-cursor"}, "columns_hashed", "`people` is not a table that is captured from a connection with the plug-in `mysql`, so its column `email` cannot be hashed"),
    ],
)  # fmt: skip
def test_a_change_that_would_show_or_break_something_is_refused(
    owner: Client, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], field: str, says: str
) -> None:
    onboard(owner, columns_hashed=["email"], columns_masked=["born"])
    monkeypatch.setattr("lakehub.catalog.storages.sql.SqlStorage.describe", MySqlStorage.describe)
    answer = patch(owner, **fields)
    assert answer.status_code == 422, answer.content
    assert says in answer.json()["error"]["fields"][field], answer.content
    feed = Feed.objects.get()
    assert (feed.columns_hashed, feed.columns_masked, feed.connection.name) == (["email"], ["born"], "tapped")  # type: ignore[union-attr]


def test_what_the_source_has_is_read_again_without_what_is_left_out(owner: Client) -> None:
    onboard(owner, columns_hashed=["email"])
    dataset = Dataset.objects.get()
    version = dataset.metadata_version
    assert changes.refresh_columns(dataset, actor="ana", now=NOW).metadata_version == version


def test_the_commands_set_them(owner: Client, tmp_path: Path) -> None:
    onboard(owner)
    file = tmp_path / "changes.yaml"
    file.write_text("columns_masked: [phone]")
    call_command("change_dataset", "people", str(file))
    assert Feed.objects.get().columns_masked == ["phone"]
    file.write_text("columns_masked: [fone]")
    with pytest.raises(CommandError, match="There is no column `fone`"):
        call_command("change_dataset", "people", str(file))


def test_the_pages_set_and_show_them(owner: Client) -> None:
    typed = {
        **{name: str(value) for name, value in APPLICATION.items() if name not in ("columns_left_out", "data_centers", "primary_key")},
        "data_centers": ["dc1"], "primary_key": "id", "ingested": "on", "kind": "append-plus-update",
        "columns_left_out": "a b\r\n lead\r\n\r\nä`😀\r\n", "columns_masked": "Phone",
    }  # fmt: skip
    refused = owner.post("/onboarding", typed)
    text = refused.content.decode()
    assert refused.status_code == 422
    assert "Did you mean" in text.partition('name="columns_masked"')[2][:600]
    assert "ä`😀" in text
    assert owner.post("/onboarding", {**typed, "columns_masked": "phone "}).status_code == 302
    assert (Feed.objects.get().columns_left_out, Feed.objects.get().columns_masked) == (UNFIT, ["phone"])
    settings = owner.get("/datasets/people/settings").content.decode()
    assert "a b\n lead\nä`😀</textarea>" in settings
    for address in ("/datasets/people/data", "/datasets/people/ingestion"):
        shown = owner.get(address).content.decode().partition('id="hc"')[2].partition("</section>")[0]
        assert "Columns left out" in shown
        assert "<code>a b</code>, <code> lead</code>, <code>ä`😀</code>" in shown
        assert "<code>phone</code>" in shown
        assert "Columns hashed" not in shown
