"""Onboarding checks what was said against the real table, and writes all or nothing."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakehub.accounts.models import AuditEntry
from lakehub.catalog.datasets import changes, lookup, offboarding
from lakehub.catalog.models import Connection, Dataset, DatasetCopy, Feed
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest, UpstreamRequest
from lakehub.kernel.errors import Conflict, NotFound, Refused
from tests import factories as make

pytestmark = pytest.mark.django_db

APPLICATION = OnboardingRequest(
    name="flights",
    team="flight-ops",
    tier=1,
    connection="ops",
    table="flights",
    data_centers=("dc1", "dc2"),
    primary_key=("carrier", "flight", "flight_date"),
    reference_key="updated_at",
    cursor_column="updated_at",
    partition_column="flight_date",
    grain="day",
    partition_tz="America/New_York",
)


@pytest.fixture
def ops(tmp_path: Path) -> Connection:
    file = tmp_path / "ops.db"
    with sqlite3.connect(file) as db:
        db.execute(
            "CREATE TABLE flights (carrier TEXT, flight INTEGER, flight_date TEXT, tailnum TEXT, updated_at TIMESTAMP, delay REAL)"
        )
        db.executemany(
            "INSERT INTO flights VALUES ('UA', ?, '2026-11-16', ?, '2026-11-16 12:00:00', 1.5)", [(1, "N1"), (2, None)]
        )
    make.data_center("dc1")
    make.data_center("dc2")
    return make.connection(url=f"sqlite:///{file}")


def refused(application: OnboardingRequest) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        onboard_dataset(application, actor="ines", now=make.NOW)
    assert not Dataset.objects.exists()
    assert not AuditEntry.objects.exists()
    return caught.value.fields


def test_a_dataset_is_onboarded_with_a_copy_in_each_data_center(ops: Connection) -> None:
    made = onboard_dataset(APPLICATION, actor="ines", now=make.NOW)
    assert made.dataset.record_key == ["carrier", "flight", "flight_date"]
    assert [c.uri for c in DatasetCopy.objects.all()] == ["file:///lake/dc1/flights", "file:///lake/dc2/flights"]
    assert made.dataset.columns[1] == {"name": "flight", "type": "integer", "nullable": True}
    assert (made.evidence.rows, made.evidence.distinct, made.evidence.nulls) == (2, 2, 0)  # type: ignore[union-attr]
    assert AuditEntry.objects.get().subject == "dataset:flights"


def test_a_mistyped_column_is_named_with_the_nearest_one(ops: Connection) -> None:
    fields = refused(replace(APPLICATION, primary_key=("carrier", "fligth")))
    assert fields["primary_key"] == "There is no column `fligth`. Did you mean `flight`?"


def test_bytes_are_no_part_of_a_record_key(ops: Connection, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ops.db") as db:
        db.execute("ALTER TABLE flights ADD COLUMN digest BLOB")
    fields = refused(replace(APPLICATION, primary_key=("flight", "digest")))
    assert "Column `digest` is binary and cannot be a part of a record key" in fields["primary_key"]


def test_an_event_time_of_numbers_is_refused(ops: Connection) -> None:
    why = refused(replace(APPLICATION, event_time="delay"))["event_time"]
    assert why == "Column `delay` is float and holds no times: use a date or a timestamp, or leave it empty."


def test_columns_that_the_lake_cannot_hold_are_refused_and_may_be_monitored(ops: Connection, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "ops.db") as db:
        db.execute('CREATE TABLE legs (id INTEGER, "Größe" TEXT, "two words" TEXT, "2nd" TEXT)')
    legs = replace(
        APPLICATION, table="legs", kind="append-only", primary_key=("id",), reference_key="", cursor_column="",
        partition_column="", grain="none", data_centers=("dc1",),
    )  # fmt: skip
    assert "The lake cannot hold the columns `Größe`, `two words`, `2nd`: names there have" in refused(legs)["table"]
    assert onboard_dataset(replace(legs, ingested=False), actor="ines", now=make.NOW).dataset.ingested is False


def test_all_problems_are_told_at_once(ops: Connection) -> None:
    fields = refused(replace(APPLICATION, tier=7, team="flight-opps", data_centers=("dc3",), grain="dya"))
    assert fields["tier"] == "There is no tier 7: tiers go from 0 (highest) to 5."
    assert "Did you mean `flight-ops`?" in fields["team"]
    assert "There is no data center `dc3`" in fields["data_centers"]
    assert "Did you mean `day`?" in fields["grain"]


def test_a_key_with_nulls_is_refused_with_how_many(ops: Connection) -> None:
    fields = refused(replace(APPLICATION, primary_key=("carrier", "tailnum")))
    assert (
        "has a null in 1 of 2 rows: 1 in `tailnum`. A row without a key is not brought into the lake"
        in fields["primary_key"]
    )


def test_a_record_key_that_repeats_is_refused(ops: Connection) -> None:
    assert "names 1 of 2 rows" in refused(replace(APPLICATION, record_key=("carrier",)))["record_key"]


def test_a_primary_key_that_repeats_is_evidence_and_no_reason_to_refuse(ops: Connection) -> None:
    made = onboard_dataset(
        replace(APPLICATION, primary_key=("carrier",), record_key=("flight",)), actor="ines", now=make.NOW
    )
    assert (made.evidence.rows, made.evidence.distinct) == (2, 1)  # type: ignore[union-attr]


def test_the_record_key_is_checked_also_where_it_is_the_primary_key(ops: Connection) -> None:
    fields = refused(replace(APPLICATION, primary_key=("carrier",)))
    assert "names 1 of 2 rows: it must be unique" in fields["primary_key"]


def test_what_is_only_monitored_may_have_rows_without_a_key_and_they_are_told(ops: Connection) -> None:
    watched = replace(APPLICATION, ingested=False, data_centers=("dc1",), primary_key=("carrier", "tailnum"))
    made = onboard_dataset(watched, actor="ines", now=make.NOW)
    assert made.evidence is not None
    assert (made.evidence.nulls, made.evidence.null_columns) == (1, {"tailnum": 1})
    assert made.notes[0] == "Key: 1 key in 2 rows, 1 row with a null (1 in `tailnum`); all rows were read."


def test_a_partition_and_an_event_time_that_were_left_out_are_proposed(ops: Connection) -> None:
    plain = replace(APPLICATION, partition_column="", grain="none", event_time="", primary_key=("flight",))
    with sqlite3.connect(ops.url.removeprefix("sqlite:///")) as db:
        db.execute("ALTER TABLE flights ADD COLUMN took_off TIMESTAMP")
        db.execute("UPDATE flights SET took_off = '2026-11-15 12:00:00', flight_date = '2026-11-' || (14 + flight)")
    made = onboard_dataset(plain, actor="ines", now=make.NOW)
    assert (made.dataset.partition_column, made.dataset.event_time) == ("", "")
    assert [(proposed.field, proposed.column, proposed.grain) for proposed in made.proposals] == [
        ("partition_column", "flight_date", "day"),
        ("event_time", "took_off", "none"),
    ]
    assert made.notes[1].startswith(
        "No partition was named, so the table is one piece. By its values `flight_date` says"
    )


def test_a_connection_without_a_table_says_so_with_the_remedy(ops: Connection) -> None:
    with sqlite3.connect(ops.url.removeprefix("sqlite:///")) as db:
        db.execute("DROP TABLE flights")
    assert "ops lists no table at all. Check that the account may see" in refused(APPLICATION)["table"]


def test_a_source_that_cannot_be_reached_is_named(ops: Connection, tmp_path: Path) -> None:
    Connection.objects.filter(pk=ops.pk).update(url=ops.url)
    ops.url = f"sqlite:///{tmp_path / 'gone.db'}"
    ops.save()
    assert "cannot be read: unable to open database file" in refused(APPLICATION)["table"]
    assert not (tmp_path / "gone.db").exists()


def test_a_table_that_is_not_there_is_named_with_the_nearest_one(ops: Connection) -> None:
    assert "Did you mean `flights`?" in refused(replace(APPLICATION, table="flihgts"))["table"]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("reference_key", "", "need a reference key"),
        ("reference_key", "delay", "is float"),
        ("partition_tz", "America/New_Yrok", "There is no time zone"),
        ("data_centers", (), "at least one data center"),
        ("every", timedelta(), "no length of time"),
        ("freshness_sla", timedelta(seconds=-5), "no length of time"),
        ("grace", timedelta(days=5_000_000), "no length of time"),
        ("kind", "append", "Did you mean `append-only`?"),
        ("upstream", (UpstreamRequest("planes"),), "There is no dataset `planes`."),
    ],
)
def test_a_bad_value_is_refused_by_its_field(ops: Connection, field: str, value: object, message: str) -> None:
    assert message in refused(replace(APPLICATION, **{field: value}))[field]  # type: ignore[arg-type]


def test_a_name_is_taken_once(ops: Connection) -> None:
    onboard_dataset(APPLICATION, actor="ines", now=make.NOW)
    with pytest.raises(Refused, match="There is a dataset `flights` already"):
        onboard_dataset(APPLICATION, actor="jonas", now=make.NOW)
    assert Dataset.objects.count() == 1


def test_a_feed_names_its_inputs_where_they_are_in_the_same_lakes(ops: Connection) -> None:
    dataset = onboard_dataset(APPLICATION, actor="ines", now=make.NOW).dataset
    make.dataset("planes", copies=[copy.data_center.name for copy in dataset.copies.all()])
    make.dataset("elsewhere", copies=("dc9",))
    changes.update_dataset(dataset, {"inputs": ["planes"]}, actor="ines", now=make.NOW)
    assert Feed.objects.get(dataset=dataset).inputs == ["planes"]
    for name, why in (("plans", "Did you mean `planes`"), ("elsewhere", "has no copy in"), (dataset.name, "itself")):
        with pytest.raises(Refused, match=why):
            changes.update_dataset(dataset, {"inputs": [name]}, actor="ines", now=make.NOW)
    changes.update_dataset(dataset, {"inputs": None}, actor="ines", now=make.NOW)
    assert Feed.objects.get(dataset=dataset).inputs is None


def test_a_feed_is_paused_and_slowed_by_the_same_use_case(ops: Connection) -> None:
    dataset = onboard_dataset(APPLICATION, actor="ines", now=make.NOW).dataset
    changes.update_dataset(dataset, {"paused": True, "every": timedelta(hours=1)}, actor="ines", now=make.NOW)
    feed = Dataset.objects.get().feed
    assert (feed.paused, feed.every) == (True, timedelta(hours=1))
    assert AuditEntry.objects.filter(action="change").get().detail["was"] == {"paused": False, "every": "0:05:00"}


def test_a_change_raises_the_version_and_of_two_at_once_one_wins(ops: Connection) -> None:
    first = onboard_dataset(APPLICATION, actor="ines", now=make.NOW).dataset
    second = Dataset.objects.get(pk=first.pk)
    changed = changes.update_dataset(first, {"tier": 0}, actor="ines", now=make.NOW)
    assert (changed.tier, changed.metadata_version) == (0, 2)
    with pytest.raises(Conflict, match="nothing was changed"):
        changes.update_dataset(second, {"tier": 5}, actor="jonas", now=make.NOW)


def test_an_unknown_change_is_refused(ops: Connection) -> None:
    dataset = onboard_dataset(APPLICATION, actor="ines", now=make.NOW).dataset
    with pytest.raises(Refused, match="Did you mean `tier`"):
        changes.update_dataset(dataset, {"teir": 0}, actor="ines", now=make.NOW)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"event_time": "nope"}, "There is no column `nope`"),
        ({"freshness_sla": timedelta(hours=-1)}, "no length of time"),
        ({"primary_key": ["tial"]}, "There is no column `tial`"),
    ],
)
def test_a_change_is_checked_like_onboarding(ops: Connection, changed: dict[str, object], message: str) -> None:
    dataset = onboard_dataset(APPLICATION, actor="ines", now=make.NOW).dataset
    with pytest.raises(Refused, match=message):
        changes.update_dataset(dataset, changed, actor="ines", now=make.NOW)
    assert Dataset.objects.get().metadata_version == 1


def test_what_was_let_go_is_onboarded_again_with_a_new_version(ops: Connection) -> None:
    dataset = onboard_dataset(APPLICATION, actor="ines", now=make.NOW).dataset
    offboarding.offboard_dataset(dataset, actor="ines", now=make.NOW)
    with pytest.raises(Refused, match="off-boarded; choose another name"):
        onboard_dataset(APPLICATION, actor="ines", now=make.NOW)
    offboarding.restore_dataset(lookup.any_dataset("flights"), actor="ines", now=make.NOW)
    assert lookup.live_dataset("flights").metadata_version == 2
    with pytest.raises(Conflict, match="onboarded already"):
        offboarding.restore_dataset(dataset, actor="jonas", now=make.NOW)


def test_off_boarding_hides_the_dataset_and_keeps_it(ops: Connection) -> None:
    dataset = onboard_dataset(APPLICATION, actor="ines", now=make.NOW).dataset
    offboarding.offboard_dataset(dataset, actor="ines", now=make.NOW)
    with pytest.raises(NotFound, match="There is no dataset `flights`"):
        lookup.live_dataset("flights")
    assert Dataset.objects.get().offboarded_at == make.NOW
