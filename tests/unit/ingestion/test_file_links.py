"""Who may put files into a folder that is a source has no other file of the machine loaded by a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingestion.sources import SourceConfig, SourceError
from ingestion.sources.files.source import FilesSource
from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.storages.files import FilesStorage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`data/in` with a file of its own, beside a secret and a folder whose name begins the same."""
    for name in ("secret", "data/in/days", "data/in-secret"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "secret" / "keys.csv").write_text("id,key\n1,hush\n")
    (tmp_path / "data" / "in-secret" / "keys.csv").write_text("id,key\n1,hush\n")
    (tmp_path / "data" / "in" / "days" / "a.csv").write_text("id\n1\n")
    return tmp_path / "data" / "in"


def names_read(folder: Path, glob: str) -> list[str]:
    reading = FilesSource(SourceConfig(folder.as_uri(), glob)).snapshot()
    list(reading.batches)
    return sorted(reading.position()["files"])


@pytest.mark.parametrize("target", ["../../secret/keys.csv", "../in-secret/keys.csv"])
def test_a_link_to_a_file_elsewhere_is_passed_over(folder: Path, target: str) -> None:
    (folder / "b.csv").symlink_to(target)
    assert names_read(folder, "*.csv") == ["days/a.csv"]
    with pytest.raises(SourceError, match="No file below"):
        names_read(folder, "b.csv")


def test_a_link_to_a_folder_elsewhere_is_passed_over(folder: Path) -> None:
    (folder / "more").symlink_to("../../secret")
    assert names_read(folder, "*.csv") == ["days/a.csv"]


def test_links_within_the_folder_are_followed_and_the_folder_may_be_one(folder: Path, tmp_path: Path) -> None:
    (folder / "b.csv").symlink_to("days/a.csv")
    os.symlink(folder, tmp_path / "entry")
    assert names_read(tmp_path / "entry", "*.csv") == ["b.csv", "days/a.csv"]


def test_columns_and_keys_are_not_read_by_such_a_link_either(folder: Path) -> None:
    (folder / "b.csv").symlink_to("../../secret/keys.csv")
    (folder / "c.csv").symlink_to("days/a.csv")
    storage = FilesStorage(folder.as_uri())
    with pytest.raises(MetadataUnavailable, match="matches 0 files"):
        storage.describe("b.csv")
    assert [column.name for column in storage.describe("*.csv").columns] == ["id"]
