"""One Spark session for all tests of this folder, small tables, and a lake that goes away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.session import close_session, open_session
from tests.spark.index_shares import left_out
from tests.spark.order_shop import Orders


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    unwanted = left_out(items)
    config.hook.pytest_deselected(items=unwanted)
    items[:] = [item for item in items if item not in unwanted]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session("tests")
    yield session
    close_session(session)


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """The URI of an empty lake."""
    return (tmp_path / "lake").as_uri()


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)
