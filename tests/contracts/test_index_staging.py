"""What jobs of the Global Index leave where their files are staged when they are killed: the next building removes what is theirs, and old."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

from pyarrow import fs

from ingestion.spark.global_index.hbase_client.staging import (
    LEFT_AFTER,
    _written_before,
    staged_name,
    sweep_staging,
)

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
OLD, YOUNG = NOW - LEFT_AFTER - timedelta(minutes=1), NOW - LEFT_AFTER + timedelta(minutes=1)


def stage(folder: Path, name: str, at: datetime) -> str:
    """A folder with an HFile, or a file where the name has a suffix."""
    path = folder / name
    if path.suffix:
        path.write_text("0\n")
    else:
        (path / "e").mkdir(parents=True)
        (path / "e" / "0").write_bytes(b"rows")
    os.utime(path, (at.timestamp(), at.timestamp()))
    return name


def test_what_is_old_and_of_this_index_is_removed(tmp_path: Path) -> None:
    for name in (staged_name("lakehub.flights"), staged_name("lakehub.flights", ".rate")):
        stage(tmp_path, name, OLD)
    kept = {
        stage(tmp_path, staged_name("lakehub.flights"), YOUNG),
        stage(tmp_path, staged_name("lakehub.flights", ".rate"), YOUNG),
        stage(tmp_path, staged_name("lakehub.flights-new"), OLD),
        stage(tmp_path, staged_name("lakehubxflights"), OLD),
        stage(tmp_path, "lakehub.flights-of-somebody-else", OLD),
        stage(tmp_path, "lakehub.flights", OLD),
    }
    for _ in range(2):
        sweep_staging(tmp_path.as_uri(), "lakehub.flights", upto=NOW - LEFT_AFTER)
        assert {path.name for path in tmp_path.iterdir()} == kept


def test_a_folder_of_an_object_store_is_as_old_as_its_newest_file() -> None:
    """Of the folder itself an object store says nothing."""
    folder = fs.FileInfo("staging/a", fs.FileType.Directory)
    for ages, is_old in (([OLD, OLD], True), ([OLD, YOUNG], False), ([], False)):
        files = [fs.FileInfo("staging/a/e", fs.FileType.File, mtime=each) for each in ages]
        store = SimpleNamespace(get_file_info=lambda selector, files=files: files)
        assert _written_before(store, folder, NOW - LEFT_AFTER) == is_old


def test_a_folder_that_is_not_there_yet_has_nothing_to_be_removed(tmp_path: Path) -> None:
    sweep_staging((tmp_path / "hfiles").as_uri(), "lakehub.flights", upto=NOW - LEFT_AFTER)
    assert [*tmp_path.iterdir()] == []
