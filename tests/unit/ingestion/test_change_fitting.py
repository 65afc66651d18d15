"""Decoded events in the types of the table: what fits goes on as plain values, in the order of the log; the rest has its reason."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.merging.events import ChangeEvent, Operation
from ingestion.domain.schema import Schema
from ingestion.heatpipe.decoder import Decoded
from ingestion.spark.changes.fitting import FittedChanges, fit_changes
from ingestion.spark.contract.spec import TableSpec
from tests.unit.ingestion.heatpipe.messages import NOW, subject_schema

COLUMNS = Schema.of(
    {
        "id": "long",
        "region": "string",
        "day": "string",
        "fare": "decimal(6,2)",
        "at": "timestamp",
        "on": "date",
        "n": "int",
    }
)
TABLE = TableSpec("trips", "file:///lake/trips", "file:///lake/_errors", ("id", "region"), partition_column="day")
AT = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
WHOLE: dict[str, Any] = {
    "id": 7,
    "region": "eu",
    "day": "d1",
    "fare": Decimal("1.50"),
    "at": AT,
    "on": date(1970, 1, 3),
    "n": 4,
}


TOO_LARGE = Decimal("12345.00")
EVENTS = st.fixed_dictionaries(
    {
        "id": st.just(7),
        "region": st.sampled_from(["eu", "us", None]),
        "day": st.sampled_from(["d1", "a/b", None]),
        "fare": st.sampled_from([Decimal("1.50"), TOO_LARGE, None]),
        "n": st.sampled_from([1, 2**31 - 1, "x", None]),
    }
)


def event(values: dict[str, Any], place: int = 0, *, operation: Operation = Operation.UPDATE) -> Decoded:
    row_key = (values.get("id"), values.get("region"))
    change = ChangeEvent(operation, row_key, b"\x01", (place,), values, 1, NOW, data_center="dc1")
    return Decoded(change, subject_schema(), "mysql:ops", "", NOW, None)


def fit(*events: Decoded) -> FittedChanges:
    return fit_changes(events, TABLE, COLUMNS)


def test_values_are_plain_and_keys_as_hudi_writes_them() -> None:
    (change,) = fit(event(WHOLE)).changes
    assert change.event.values == WHOLE | {"at": 1_000_000, "on": 2}
    assert (change.key, change.event.row_key, change.row_key_text) == ("id:7,region:eu", (7, "eu"), '["7","eu"]')


def test_events_that_carry_different_columns_stay_in_the_order_of_the_log() -> None:
    key = {"id": 7, "region": "eu"}
    fitted = fit(
        event(WHOLE, 0),
        event({**key, "n": 5}, 1),
        event(WHOLE, 2, operation=Operation.DELETE),
        event(WHOLE, 3),
        event({**key, "n": None}, 4),
    )
    assert [change.event.position for change in fitted.changes] == [(place,) for place in range(5)]
    assert [sorted(change.event.values) for change in fitted.changes][1:3] == [["id", "n", "region"], ["id", "region"]]
    assert fitted.changes[4].event.values["n"] is None, "a null that is carried is a value"


def test_what_does_not_fit_has_its_reason_and_its_place() -> None:
    fitted = fit(
        event(WHOLE | {"fare": Decimal("12345.00")}, 0),
        event(WHOLE, 1),
        event(WHOLE | {"day": None}, 2),
        event(WHOLE | {"region": None}, 3),
        event(WHOLE | {"day": "a/b"}, 4),
        event({"id": 7, "region": "eu", "n": 2**31}, 5),
    )
    assert [change.event.position for change in fitted.changes] == [(1,)]
    assert {place: misfit.column for place, misfit in fitted.rejected.items()} == {
        0: "fare",
        2: "day",
        3: "region",
        4: "day",
        5: "n",
    }


@given(st.lists(EVENTS, max_size=12))
def test_with_null_instead_each_event_is_a_change_or_rejected_and_notes_are_of_changes(
    values: list[dict[str, Any]],
) -> None:
    """Exactly the values that do not fit are null, and only where a row can be without them."""
    events = [event(each, place) for place, each in enumerate(values)]
    fitted = fit_changes(events, TABLE, COLUMNS, nulls_misfits=True)
    strict = fit(*events)
    assert len(fitted.changes) + len(fitted.rejected) == len(events)
    places = {change.event.position[0]: change.event.values for change in fitted.changes}
    assert fitted.nulled.keys() <= places.keys()
    assert fitted.nulled.keys() == strict.rejected.keys() & places.keys()
    for place, stored in places.items():
        given_values = values[place]
        unfit = {name for name in ("fare", "n") if given_values.get(name) in (TOO_LARGE, "x")}
        assert {name for name in unfit if stored[name] is None} == unfit
        assert {name for name, value in stored.items() if value is None} - unfit == {
            name for name in stored if given_values[name] is None
        }
        assert (place in fitted.nulled) == bool(unfit)
        assert all(f"`{name}`" in fitted.nulled[place].reason for name in unfit)
    for place in fitted.rejected:
        assert values[place].get("region") is None or values[place]["day"] in (None, "a/b")


def test_a_delete_needs_its_key_only() -> None:
    fitted = fit(
        event({"id": 7, "region": "eu"}, operation=Operation.DELETE), event({"id": 8}, 1, operation=Operation.DELETE)
    )
    assert [change.key for change in fitted.changes] == ["id:7,region:eu"]
    assert [*fitted.rejected] == [1]


def test_a_change_of_some_columns_needs_no_partition() -> None:
    assert len(fit(event({"id": 7, "region": "eu", "n": 1})).changes) == 1


def test_a_key_that_nobody_could_look_up_is_put_aside() -> None:
    fitted = fit(event(WHOLE | {"region": ""}))
    assert (fitted.changes, [*fitted.rejected]) == ((), [0])
    assert fit().changes == ()
