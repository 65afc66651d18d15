"""The Global Index of a table that is written on meanwhile: made without the permit, and whole all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.contract.spec import ClusterSpec, DeleteSpec
from ingestion.spark.global_index import building
from ingestion.spark.global_index.hbase_client.administration import Administration
from lakehub.kernel import failpoint
from tests.spark.order_shop import Orders, global_index_of
from tests.spark.test_global_index import LATEST, called, entries, places


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    """Its jobs use the index `simple`."""
    orders = Orders(tmp_path)
    orders.table = replace(orders.table, record_key=("id",), global_index=global_index_of(tmp_path))
    return orders


def rebuilt(spark: SparkSession, orders: Orders, run: str) -> object:
    """As whoever changes the choice asks for it, beside jobs that go by the former."""
    table = replace(orders.table, index="hbase")
    return orders.run(spark, "rebuild_index", run, source=None, table=table).error


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, Callable[[], object]], None]]:
    """What is to happen when a building comes to a point, once."""
    waiting: dict[str, Callable[[], object]] = {}
    monkeypatch.setattr(failpoint, "reach", lambda name: waiting.pop(name, lambda: None)())
    yield waiting.__setitem__
    assert not waiting


def test_what_is_committed_while_an_index_is_built_is_in_it(
    spark: SparkSession, orders: Orders, meanwhile: Callable[[str, Callable[[], object]], None]
) -> None:
    """Rows are inserted, changed, moved and deleted, and files put together, behind its reading and before it."""
    orders.fill(40, days=4)
    orders.run(spark, "bootstrap", "b")

    def work(number: int) -> Callable[[], None]:
        def commit() -> None:
            day, key, at = f"2026-11-1{number}", 100 * (number + 1), f"2026-11-16 09:00:0{number}"
            orders.add((key, "2026-11-01", 1.0, at), (key + 1, day, 1.0, at))
            orders.sql(f"update orders set day = '{day}', updated_at = '{at}' where id in ({number}, 20)")
            assert orders.run(spark, "incremental", f"i{number}").written.inserts == 4
            deleted = DeleteSpec(keys=((str(30 + number),),))
            assert orders.run(spark, "delete", f"d{number}", delete=deleted).written.deletes == 1
            orders.sql(f"delete from orders where id = {30 + number}")
            clustered = orders.run(spark, "cluster", f"c{number}", cluster=ClusterSpec(quiet_s=0.0), source=None)
            assert clustered.error is None

        return commit

    read = building.entries_of_table

    def work_first(session: SparkSession, table: object) -> object:
        work(1)()
        return read(session, table)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(building, "entries_of_table", work_first)
        meanwhile("index.after_reading", work(2))
        assert rebuilt(spark, orders, "r") is None
    orders.table = replace(orders.table, index="hbase")
    assert entries(spark, orders) == places(spark, orders)
    orders.sql(f"update orders set amount = 9, updated_at = '{LATEST}'")
    orders.add((900, "2026-11-01", 1.0, LATEST))
    report = orders.run(spark, "incremental", "j")
    assert (report.error, report.written.inserts) == (None, 1)
    assert orders.rows(spark) == orders.source_rows()
    verified = orders.run(spark, "verify_index", "v", source=None).output
    assert {*verified["problems"].values()} == {0}


def test_an_index_that_another_job_has_built_meanwhile_stays(
    spark: SparkSession,
    orders: Orders,
    meanwhile: Callable[[str, Callable[[], object]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All jobs of a table whose index was lost would else make it anew, one after the other. It has what was committed since."""
    orders.fill(10)
    orders.run(spark, "bootstrap", "b")
    made: list[str] = []
    create = Administration.create

    def counted(self: Administration, name: str, *arguments: Any) -> None:
        made.append(name)
        create(self, name, *arguments)

    def build_and_commit() -> None:
        assert rebuilt(spark, orders, "other") is None
        orders.add((900, "2026-11-01", 1.0, LATEST))
        assert orders.run(spark, "incremental", "i").error is None

    monkeypatch.setattr(Administration, "create", counted)
    meanwhile("index.after_reading", build_and_commit)
    assert rebuilt(spark, orders, "r") is None
    assert len(made) == 1
    orders.table = replace(orders.table, index="hbase")
    assert entries(spark, orders) == places(spark, orders)
    assert rebuilt(spark, orders, "s") is None
    assert len(made) == 2, "whoever asks again has it made"


def test_a_commit_that_comes_and_is_rolled_back_while_an_index_is_built_ends_the_building(
    spark: SparkSession, orders: Orders, meanwhile: Callable[[str, Callable[[], object]], None]
) -> None:
    """The reading may have seen the table without what the commit had deleted."""
    orders.fill(10)
    orders.run(spark, "bootstrap", "b")

    def come_and_go() -> None:
        assert orders.run(spark, "delete", "d", delete=DeleteSpec(keys=(("3",),))).error is None
        newest = orders.timeline.commits()[-1].instant
        called(spark, orders, f"rollback_to_instant(table => 'taken_back', instant_time => '{newest}')")

    meanwhile("index.after_reading", come_and_go)
    assert "were rolled back" in str(rebuilt(spark, orders, "r"))
    assert rebuilt(spark, orders, "again") is None
