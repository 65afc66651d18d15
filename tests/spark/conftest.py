"""One Spark session for all tests of this folder, small tables, and a lake that goes away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ingestion.spark.session import open_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = open_session("tests")
    yield session
    session.stop()


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """The URI of an empty lake."""
    return (tmp_path / "lake").as_uri()
