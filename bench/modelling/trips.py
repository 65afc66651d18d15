"""The tables that are modelled from: trips in partitions by day, their drivers and cities, all made by Spark from the numbers of the rows; and a day's change of them."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.modelling.day_change import GONE, NEW, DayChange
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.tables import growing_time, hudi
from tests.spark.pipeline_lake import InputTable, PipelineLake, pipeline_of

DRIVERS, CITIES = 20_000, 200
FIRST_DAY = "2026-01-01"
_MODES = {"insert_overwrite_table": "overwrite", "insert_overwrite": "append"}
_UNSORTED = {"hoodie.bulkinsert.sort.mode": "NONE"}
TABLES = {
    "trips": InputTable(
        {
            "trip_id": "long", "day": "string", "driver_id": "int", "city_id": "int", "status": "string", "fare": "decimal(10,2)", "miles": "double",
            "seconds": "int", "started_at": "timestamp", "payment": "string", "requests": "int",
        },
        ("day", "trip_id"),
        "day",
    ),
    "drivers": InputTable({"driver_id": "int", "name": "string", "vehicle": "string", "seats": "int"}, ("driver_id",)),
    "cities": InputTable({"city_id": "int", "name": "string", "region": "string"}, ("city_id",)),
}  # fmt: skip
PIPELINES = {
    "wide": pipeline_of(
        "SELECT t.day, t.trip_id, t.status, t.fare, t.miles, t.seconds, t.started_at, t.payment, c.name AS city, c.region, d.name AS driver, d.vehicle, d.seats "
        "FROM trips t LEFT JOIN drivers d ON t.driver_id = d.driver_id LEFT JOIN cities c ON t.city_id = c.city_id",
        {
            "day": "string", "trip_id": "long", "status": "string", "fare": "decimal(10,2)", "miles": "double", "seconds": "int", "started_at": "timestamp",
            "payment": "string", "city": "string", "region": "string", "driver": "string", "vehicle": "string", "seats": "int",
        },
        ("day", "trip_id"),
        "trips", "drivers", "cities",
        name="wide",
        partition="day",
    ),
    "daily": pipeline_of(
        "SELECT t.day, c.name AS city, max(c.region) AS region, count(*) AS trips, count_if(t.status = 'cancelled') AS cancelled, sum(t.fare) AS fares "
        "FROM trips t JOIN cities c ON t.city_id = c.city_id GROUP BY t.day, c.name",
        {"day": "string", "city": "string", "region": "string", "trips": "long", "cancelled": "long", "fares": "decimal(20,2)"},
        ("day", "city"),
        "trips", "cities",
        name="daily",
        partition="day",
    ),
}  # fmt: skip


def make_tables(lake: PipelineLake, rows: int, days: int) -> None:
    """A partition of `trips` is one task, which writes one file."""
    trips = lake.spark.range(0, rows, 1, days).select(*_trip(F.col("id"), (F.col("id") / (rows // days)).cast("int")))
    drivers = lake.spark.range(0, DRIVERS, 1, 1).selectExpr(
        "CAST(id AS INT) AS driver_id", "concat('driver ', id) AS name", "concat('vehicle ', id % 500) AS vehicle", "CAST(2 + id % 5 AS INT) AS seats"
    )  # fmt: skip
    cities = lake.spark.range(0, CITIES, 1, 1).selectExpr(
        "CAST(id AS INT) AS city_id", "concat('city ', id) AS name", "concat('region ', id % 12) AS region"
    )
    for name, frame in {"trips": trips, "drivers": drivers, "cities": cities}.items():
        write(frame, lake.table(name), "bulk_insert")


def apply(lake: PipelineLake, change: DayChange) -> None:
    """In two commits of `trips`: one of new and other rows, one of those that go."""
    all_rows = lake.spark.range(0, change.rows, 1, change.days)
    day = (F.col("id") / change.rows_a_day).cast("int")
    late = all_rows.where(day.isin(*change.late) & (_chance("is changed") < change.late_share))
    goes = _chance("goes") < GONE / (1 - NEW)
    updated = late.where(~goes & (_chance("is new") >= NEW)).select(*_trip(F.col("id"), day, "corrected"))
    number = F.col("id") - change.rows
    any_late = F.element_at(
        F.array(*map(F.lit, change.late or (change.newest,))), (number % max(1, len(change.late)) + 1).cast("int")
    )
    new_day = F.when(number < change.rows_a_day, F.lit(change.newest)).otherwise(any_late)
    new = lake.spark.range(change.rows, change.rows + change.new_rows, 1, 2).select(*_trip(F.col("id"), new_day))
    write(updated.unionByName(new), lake.table("trips"), "upsert")
    gone = late.where(goes & (_chance("is new") >= NEW)).select(*_trip(F.col("id"), day))
    if change.late:
        write(gone, lake.table("trips"), "delete")


def write(frame: DataFrame, table: TableSpec, operation: str) -> None:
    hudi.write_commit(frame, table, operation, _options_of(table), {})


def overwrite(frame: DataFrame, table: TableSpec, operation: str) -> None:
    """By Hudi's writer of rows; what the product writes so goes by Avro, which takes longer. `operation`: says what is replaced."""
    growing_time.go_on_after_latest(frame.sparkSession, table.uri)
    options = hudi.table_options(table, parallelism=frame.sparkSession.sparkContext.defaultParallelism) | _options_of(
        table
    )
    writer = frame.write.format("hudi").options(**options).option("hoodie.datasource.write.operation", "bulk_insert")
    writer.option("hoodie.bulkinsert.overwrite.operation.type", operation).mode(_MODES[operation]).save(table.uri)


def _options_of(table: TableSpec) -> dict[str, str]:
    index: Index = INDEXES.get(table.index)()
    return index.write_options(table) | _UNSORTED


def day_names(spark: SparkSession, days: range) -> list[str]:
    """Of the partitions with these numbers."""
    return [str(row[0]) for row in spark.range(days.start, days.stop).select(_day_name(F.col("id"))).collect()]


def _trip(number: Column, day: Column, status: str | None = None) -> list[Column]:
    """`status`: of a trip that was corrected, with another fare."""
    kind = F.pmod(_digest("status", number), F.lit(20))
    fare = (F.pmod(_digest("fare", number), F.lit(9000)) / 100 + (0 if status is None else 100)).cast("decimal(10,2)")
    values = {
        "trip_id": number,
        "day": _day_name(day),
        "driver_id": F.pmod(_digest("driver", number), F.lit(DRIVERS)).cast("int"),
        "city_id": F.pmod(_digest("city", number), F.lit(CITIES)).cast("int"),
        "status": F.when(kind == 0, "cancelled").otherwise("completed") if status is None else F.lit(status),
        "fare": fare,
        "miles": F.pmod(_digest("miles", number), F.lit(300)) / 10,
        "seconds": F.pmod(_digest("seconds", number), F.lit(3600)).cast("int"),
        "started_at": F.timestamp_seconds(F.unix_timestamp(_day_name(day), "yyyy-MM-dd") + number % 86_400),
        "payment": F.element_at(
            F.array(*map(F.lit, ("card", "cash", "voucher"))), (kind % 3 + 1).cast("int")
        ),
        "requests": F.pmod(_digest("requests", number), F.lit(5)).cast("int"),
    }  # fmt: skip
    return [value.alias(name) for name, value in values.items()]


def _day_name(day: Column) -> Column:
    return F.date_add(F.lit(FIRST_DAY).cast("date"), day.cast("int")).cast("string")


def _digest(seed: str, number: Column) -> Column:
    return F.xxhash64(F.lit(seed), number)


def _chance(seed: str) -> Column:
    """From zero to one, of each row another, and the same each time."""
    return F.pmod(_digest(seed, F.col("id")), F.lit(1_000_000)) / 1_000_000
