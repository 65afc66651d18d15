"""What a job that reads beside others leaves alone: their staged rows, and the follower's checkpoint. No JVM."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from ingestion.domain.checkpoint import Checkpoint
from ingestion.spark.loading.rereading import checkpoint_to_stamp
from ingestion.spark.loading.staging import temporary_folder
from ingestion.spark.tables.hudi import MIN_COMMITS_KEPT

NOW = datetime(2026, 11, 16, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_each_job_has_a_folder_of_its_own_and_removes_only_those_of_jobs_past_their_time(tmp_path: Path) -> None:
    uri = (tmp_path / "orders").as_uri()
    (tmp_path / "orders" / "rows").mkdir(parents=True)  # as one folder a table was, before
    (tmp_path / "orders" / f"２０２６1116T230000Z-{'0' * 32}").mkdir()  # no time, for all that its digits say
    with temporary_folder(uri, until=NOW + HOUR, now=NOW) as first:
        (only,) = (tmp_path / "orders").iterdir()
        with temporary_folder(uri, until=NOW + HOUR, now=NOW + HOUR):
            assert first.endswith(only.name)
            assert len(list((tmp_path / "orders").iterdir())) == 2
        with temporary_folder(uri, until=NOW + 3 * HOUR, now=NOW + 2 * HOUR) as later:
            assert [folder.name for folder in (tmp_path / "orders").iterdir()] == [later.rpartition("/")[2]]
    assert list((tmp_path / "orders").iterdir()) == []


def test_a_checkpoint_is_stamped_again_only_where_the_archive_would_soon_take_it() -> None:
    assert checkpoint_to_stamp(None) is None
    assert checkpoint_to_stamp(Checkpoint({"at": 7}, "10", MIN_COMMITS_KEPT // 2 - 1)) is None
    assert checkpoint_to_stamp(Checkpoint({"at": 7}, "10", MIN_COMMITS_KEPT // 2)) == {"at": 7}
