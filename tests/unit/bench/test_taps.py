"""What bench.cdc makes of what it measured of the tap and of Debezium."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.capturing.debezium import JARS, MAIN, Batch, CapturedTable, Debezium
from bench.capturing.taps import lags_of, speed_of
from lakehub.setup.jar_list import read_jar_list


def test_a_change_is_late_until_the_first_look_at_which_it_was_there() -> None:
    sent = [10.0, 10.5, 11.0]
    reached = [(100, 10.1), (101, 10.4), (103, 11.5)]
    assert lags_of(sent, reached, 100).seconds == pytest.approx([0.4, 1.0, 0.5])


def test_the_speed_of_a_jvm_is_told_with_its_start_without_it_and_warm() -> None:
    batches = [Batch(1_000, 1.0, 4.0), Batch(5_000, 2.0, 6.0), Batch(9_000, 3.0, 7.0)]
    speed = speed_of(batches, 600.0)
    assert speed.started == pytest.approx(9_000 / 7)
    assert speed.per_core_s == pytest.approx(8_000 / 3)
    assert speed.warm == pytest.approx(4_000)
    assert speed.per_s == pytest.approx(4_000)


def test_debezium_and_its_connector_have_one_version_and_read_no_rows() -> None:
    versions = {
        jar.revision for jar in read_jar_list(JARS) if jar.module in ("debezium-embedded", "debezium-connector-mariadb")
    }
    assert len(versions) == 1
    table = CapturedTable(3306, "shop", "trips", Path("here"))
    assert table.properties()["snapshot.mode"] == "no_data"
    assert table.topic == "bench.shop.trips"
    assert f"class {MAIN.stem} " in MAIN.read_text()


def test_a_jvm_that_ends_is_told_with_its_reason(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("some warning\nDebezium ended: no such server\nmore\n")
    with subprocess.Popen([sys.executable, "-c", ""], text=True) as process:
        pass
    assert str(Debezium(process, log).failure()) == "did not start: Debezium ended: no such server"
