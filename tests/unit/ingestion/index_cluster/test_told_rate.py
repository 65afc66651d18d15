"""How fast a job may ask reaches its tasks by a file, which is there for as long as they ask."""

from __future__ import annotations

from pathlib import Path

from ingestion.spark.global_index.told_rate import rate_told_at, told_rate
from tests.polling import wait_until


def test_tasks_learn_of_another_rate_and_of_none_where_the_driver_is_gone(tmp_path: Path) -> None:
    rates = [40.0]
    with told_rate((tmp_path / "staging").as_uri(), "lakehub-dc1-7", lambda: rates[0]) as uri:
        assert [file.name.startswith("lakehub-dc1-7-") for file in (tmp_path / "staging").iterdir()] == [True]
        task = rate_told_at(uri)
        assert task() == 40.0
        for rate in (0.0, 7.5):
            rates[0] = rate
            wait_until(lambda rate=rate: task() == rate)  # type: ignore[misc]  # bound at once
    assert [*(tmp_path / "staging").iterdir()] == []
    assert rate_told_at(uri)() == 0.0
