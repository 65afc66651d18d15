"""The options of a feed are set at onboarding and later, over API and command, and read back with their effective values."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from ingestion.domain.batch_limits import BatchLimits
from ingestion.runs.job_specs import job_spec_of, table_spec_of
from ingestion.spark.contract.spec import TableSpec
from lakehub.accounts.models import AuditEntry, Role
from lakehub.catalog.datasets.feed_options import FEED_OPTIONS, checked_options
from lakehub.catalog.models import Dataset, Feed
from tests import factories as make
from tests.factories import DAY, NOW

pytestmark = pytest.mark.django_db
DEFAULTS = {
    "index": "simple", "overlap_s": 120, "chunk_rows": 20_000, "commit_rows": 5_000_000, "commit_mib": 8192, "commit_s": 900,
    "rows_per_s": 0, "max_file_mib": 32, "readers": 1, "on_move": "move",
    "deadline_s": 3600, "inputs_back_s": 0,
}  # fmt: skip
SET = {
    "index": "record_index", "overlap_s": 0, "chunk_rows": 5000, "commit_rows": 10_000, "commit_mib": 8, "commit_s": 5,
    "rows_per_s": 102.5, "max_file_mib": 8, "readers": 4, "on_move": "stay",
    "deadline_s": 90.5, "inputs_back_s": 86_400, "topic_begin": "0:15,1:20", "topic_key": "message",
}  # fmt: skip
OF_CAPTURES = {
    "history": True, "history_days": 30, "on_misfit": "null", "on_truncate": "apply", "on_drop": "apply", "on_narrowing": "stop",
}  # fmt: skip
"""Of captured datasets."""


def signed_in(role: Role) -> Client:
    person = make.user(f"a-{role}")
    make.member(person, make.team(), role)
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def owner() -> Client:
    make.feed(make.dataset("flights"))
    return signed_in(Role.OWNER)


def patch(client: Client, options: object) -> Any:
    return client.patch("/api/v1/datasets/flights", {"feed_options": options}, content_type="application/json")


def test_a_dataset_shows_every_option_with_its_effective_value(owner: Client) -> None:
    shown = owner.get("/api/v1/datasets/flights").json()
    assert (shown["feed_options"], shown["effective_feed_options"]) == ({}, DEFAULTS)
    (listed,) = owner.get("/api/v1/datasets").json()["results"]
    assert listed["effective_feed_options"] == DEFAULTS


def test_all_options_are_set_and_the_next_job_is_told_them(owner: Client) -> None:
    shown = patch(owner, SET).json()
    assert (shown["feed_options"], shown["effective_feed_options"]) == (SET, SET)
    assert SET.keys() | OF_CAPTURES.keys() == FEED_OPTIONS.keys()
    run = make.run(Dataset.objects.get().copies.get())
    spec, _ = job_spec_of(run, staging="file:///staging", ahead=0 * DAY, now=NOW)
    assert spec.source is not None
    assert (spec.table.index, spec.table.keys_stay, spec.deadline_s) == ("record_index", True, 90.5)
    assert (spec.source.overlap_s, spec.source.chunk_rows) == (0, 5000)
    assert spec.source.rows_per_s == 102.5
    assert spec.source.limits == BatchLimits(rows=10_000, bytes=8 * 2**20, seconds=5)


def test_a_history_is_of_captured_datasets_only_and_their_jobs_are_told_of_it(owner: Client) -> None:
    why = patch(owner, OF_CAPTURES).json()["error"]["fields"]["feed_options"]
    assert "`history` is for datasets that are captured" in why
    Feed.objects.update(connection=make.connection("tapped", "mysql://reader@db/ops", plugin="mysql"))
    shown = patch(owner, {}).json()["effective_feed_options"]
    assert (shown["history"], shown["history_days"]) == (False, 0)
    table = table_spec()
    assert (table.history_uri.endswith("/_history/flights"), table.keeps_history) == (True, False)
    assert patch(owner, OF_CAPTURES).json()["feed_options"] == OF_CAPTURES
    table = table_spec()
    assert (table.keeps_history, table.history_days) == (True, 30)
    for value in (1, "on", None):
        assert "give true or false" in patch(owner, {"history": value}).json()["error"]["fields"]["feed_options"]


def table_spec() -> TableSpec:
    run = make.run(Dataset.objects.get().copies.get())
    return table_spec_of(run.copy, checked_options(run.copy.dataset.feed.options), retention_hours=1)


def test_what_is_left_out_has_its_default_again_and_each_change_is_audited(owner: Client) -> None:
    patch(owner, SET)
    assert patch(owner, {"overlap_s": 60}).json()["effective_feed_options"] == {**DEFAULTS, "overlap_s": 60}
    detail = AuditEntry.objects.order_by("-pk")[0].detail
    assert detail == {"was": {"feed_options": SET}, "becomes": {"feed_options": {"overlap_s": 60}}}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"index": "recrd_index"}, "`index` is 'recrd_index': there is no such index. Did you mean `record_index`?"),
        ({"index": None}, "`index` is None: there is no such index."),
        ({"index": 7}, "`index` is 7: there is no such index."),
        ({"index": ["simple"]}, "`index` is ['simple']: there is no such index."),
        ({"overlp_s": 5}, "A feed has no option `overlp_s`. Did you mean `overlap_s`?"),
        ({"<b>x</b>": 5}, "A feed has no option `<b>x</b>`."),
        ({"overlap_s": -1}, "`overlap_s` is -1: give a number from 0 to 31622400. Leave it out for 120."),
        ({"overlap_s": 1e99}, "`overlap_s` is 1e+99: give a number"),
        ({"overlap_s": 10**400}, "`overlap_s` is 1000"),
        ({"overlap_s": True}, "`overlap_s` is True: give a number"),
        ({"overlap_s": "60"}, "`overlap_s` is '60': give a number"),
        ({"overlap_s": "NaN"}, "`overlap_s` is 'NaN': give a number"),
        ({"overlap_s": {"a": [1] * 500}}, "`overlap_s` is {'a': [1, 1,"),
        ({"chunk_rows": 0}, "`chunk_rows` is 0: give a number from 1000 to 1000000, without decimals."),
        ({"chunk_rows": 999}, "`chunk_rows` is 999: give a number from 1000"),
        ({"chunk_rows": 10.5}, "`chunk_rows` is 10.5: give a number"),
        ({"deadline_s": 29.9}, "`deadline_s` is 29.9: give a number from 30"),
        ({"deadline_s": 86_401}, "`deadline_s` is 86401: give a number from 30 to 86400. Leave it out for 3600."),
        (
            {"rows_per_s": 1e-9},
            "`rows_per_s` is 1e-09: give 0, or a number from 100 to 1000000000. Leave it out for 0.",
        ),
        ({"rows_per_s": False}, "`rows_per_s` is False: give 0, or a number"),
        ({"rows_per_s": 99.9}, "`rows_per_s` is 99.9: give 0, or a number from 100"),
        ({"commit_rows": 1}, "`commit_rows` is 1: give a number from 10000 to 1000000000, without decimals."),
        ({"commit_rows": 9_999}, "`commit_rows` is 9999: give a number from 10000"),
        ({"commit_mib": 7}, "`commit_mib` is 7: give a number from 8 to 1048576, without decimals."),
        ({"commit_s": 4.9}, "`commit_s` is 4.9: give a number from 5 to 31622400. Leave it out for 900."),
        ({"topic_begin": "yesterday"}, "`topic_begin` is 'yesterday': Write earliest, latest, a time such as"),
        ({"topic_key": ["message"]}, "`topic_key` is ['message']: `value` takes"),
        ({"inputs_back_s": 31_622_401}, "`inputs_back_s` is 31622401: give a number"),
        ({f"x{number}": 1 for number in range(10_000)}, "A feed has no option `x4`."),
    ],
)
def test_what_cannot_be_used_is_refused_by_option_value_and_remedy(
    owner: Client, options: dict[str, object], says: str
) -> None:
    answer = patch(owner, options)
    assert answer.status_code == 422, answer.content
    why = answer.json()["error"]["fields"]["feed_options"]
    assert says in why
    assert len(why) < 1100
    assert Feed.objects.get().options == {}


def test_what_was_stored_beyond_the_bounds_is_cut_to_them(owner: Client) -> None:
    commits = {"commit_rows": 1, "commit_mib": 1, "commit_s": 1}
    stored = {"deadline_s": 366 * 24 * 3600, "rows_per_s": 1e-9, "chunk_rows": 1, **commits}
    Feed.objects.update(options=stored)
    shown = owner.get("/api/v1/datasets/flights").json()
    assert shown["feed_options"] == stored
    assert shown["effective_feed_options"] == DEFAULTS | {
        "deadline_s": 86_400, "rows_per_s": 100, "chunk_rows": 1000, "commit_rows": 10_000, "commit_mib": 8, "commit_s": 5
    }  # fmt: skip
    spec, _ = job_spec_of(
        make.run(Dataset.objects.get().copies.get()), staging="file:///staging", ahead=0 * DAY, now=NOW
    )
    assert spec.source is not None
    assert (spec.deadline_s, spec.source.rows_per_s, spec.source.chunk_rows) == (86_400, 100, 1000)
    assert spec.source.limits == BatchLimits(rows=10_000, bytes=8 * 2**20, seconds=5)


def test_no_job_takes_longer_than_the_operator_allows(owner: Client, settings: Settings) -> None:
    settings.LAKEHUB_MAX_DEADLINE_S = 600
    assert owner.get("/api/v1/datasets/flights").json()["effective_feed_options"]["deadline_s"] == 600
    why = patch(owner, {"deadline_s": 601}).json()["error"]["fields"]["feed_options"]
    assert "give a number from 30 to 600. Leave it out for 600." in why
    assert patch(owner, {"deadline_s": 600, "rows_per_s": 0}).status_code == 200


@pytest.mark.parametrize("options", [None, [], "index", 5, ["index"]])
def test_options_of_another_shape_are_refused(owner: Client, options: object) -> None:
    answer = patch(owner, options)
    assert (answer.status_code, "feed_options" in answer.json()["error"]["fields"]) == (400, True), answer.content


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_no_number_of_json_is_not_a_number(owner: Client, literal: str) -> None:
    body = f'{{"feed_options": {{"overlap_s": {literal}}}}}'
    answer = owner.patch("/api/v1/datasets/flights", body, content_type="application/json")
    assert answer.status_code in (400, 422), answer.content
    assert Feed.objects.get().options == {}


def test_a_dataset_that_is_only_monitored_takes_none() -> None:
    make.feed(make.dataset("flights", ingested=False))
    owner = signed_in(Role.OWNER)
    assert owner.get("/api/v1/datasets/flights").json()["effective_feed_options"] == {}
    why = patch(owner, {"overlap_s": 5}).json()["error"]["fields"]["feed_options"]
    assert why == "`flights` is only monitored: no job loads it, so its feed takes no options."


def test_a_dataset_without_a_feed_takes_none() -> None:
    make.dataset("flights")
    answer = patch(signed_in(Role.OWNER), {"overlap_s": 5})
    assert answer.json()["error"]["fields"]["feed_options"] == (
        "`flights` is not fed, so there is no `feed_options` to change."
    )


@pytest.mark.parametrize(("role", "code"), [(Role.VIEWER, 403), (Role.OWNER, 200), (Role.ADMIN, 200)])
def test_who_may_change_the_dataset_may_change_them(role: Role, code: int) -> None:
    make.feed(make.dataset("flights"))
    assert patch(signed_in(role), SET).status_code == code
    assert Feed.objects.get().options == (SET if code == 200 else {})


@pytest.fixture
def application(tmp_path: Path) -> dict[str, object]:
    with sqlite3.connect(tmp_path / "ops.db") as db:
        db.execute("CREATE TABLE planes (tailnum TEXT, updated_at TEXT)")
        db.execute("INSERT INTO planes VALUES ('N1', '2026-11-16')")
    make.connection(url=f"sqlite:///{tmp_path / 'ops.db'}")
    make.data_center()
    named = {"name": "planes", "team": "flight-ops", "connection": "ops", "table": "planes", "data_centers": ["dc1"]}
    return {**named, "tier": 3, "primary_key": ["tailnum"], "reference_key": "updated_at"}


def test_they_are_set_at_onboarding(application: dict[str, object]) -> None:
    owner = signed_in(Role.OWNER)
    body = {**application, "feed_options": {"index": "record_index"}}
    answer = owner.post("/api/v1/datasets", body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    assert answer.json()["effective_feed_options"] == {**DEFAULTS, "index": "record_index"}
    assert AuditEntry.objects.get(action="onboard").detail["feed_options"] == {"index": "record_index"}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"feed_options": {"index": "smple"}}, "Did you mean `simple`?"),
        ({"feed_options": {"chunk_rows": 5}, "ingested": False}, "`planes` is only monitored"),
    ],
)
def test_onboarding_refuses_what_cannot_be_used(
    application: dict[str, object], changed: dict[str, object], says: str
) -> None:
    answer = signed_in(Role.OWNER).post("/api/v1/datasets", {**application, **changed}, content_type="application/json")
    assert answer.status_code == 422, answer.content
    assert says in answer.json()["error"]["fields"]["feed_options"]
    assert not Dataset.objects.exists()


def test_the_command_sets_them_and_refuses_no_number(owner: Client, tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    file.write_text("feed_options: {deadline_s: 600}")
    call_command("change_dataset", "flights", str(file))
    assert Feed.objects.get().options == {"deadline_s": 600}
    for literal in (".nan", ".inf", "yes"):
        file.write_text(f"feed_options: {{deadline_s: {literal}}}")
        with pytest.raises(CommandError, match="option `deadline_s` is"):
            call_command("change_dataset", "flights", str(file))
    assert Feed.objects.get().options == {"deadline_s": 600}
