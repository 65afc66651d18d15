"""The file system of local files does what Hadoop's own does, without a process for each file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from ingestion.spark.session import jvm

NAMES = ("plain", "with space", "a%20b", "a:b", "a#b?c", "Ünïcode", "=day=2026", ".hidden", ".plain.crc", "folder")


@pytest.fixture
def ours(spark: SparkSession) -> Any:
    return _hadoop(spark).Path("file:///").getFileSystem(_configuration(spark))


@pytest.fixture
def hadoops(spark: SparkSession) -> Any:
    files = _hadoop(spark).LocalFileSystem()
    files.initialize(jvm(spark).java.net.URI("file:///"), _configuration(spark))
    return files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES[:-1]:
        (tmp_path / name).write_text(name)
    (tmp_path / "folder").mkdir(0o750)
    (tmp_path / "plain").chmod(0o604)
    (tmp_path / "leads nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "in a circle").symlink_to(tmp_path / "in a circle")
    (tmp_path / "link").symlink_to(tmp_path / "plain")
    return tmp_path


def test_a_session_of_ours_has_it(ours: Any) -> None:
    assert ours.getClass().getSimpleName() == "LakehubLocalFileSystem"


def test_it_lists_and_tells_what_hadoops_own_does(spark: SparkSession, ours: Any, hadoops: Any, folder: Path) -> None:
    """With files of checksums left out, and links that lead nowhere."""
    listed = _facts(ours.listStatus(_path(spark, folder)))
    assert listed == _facts(hadoops.listStatus(_path(spark, folder)))
    assert len(listed) == len(NAMES)
    plain = _path(spark, folder / "plain")
    assert _facts([ours.getFileStatus(plain)]) == _facts([hadoops.getFileStatus(plain)])
    assert _facts(ours.listStatus(plain)) == _facts(hadoops.listStatus(plain))
    raw, raw_of_hadoop = ours.getRaw(), hadoops.getRaw()
    assert _facts(raw.listStatus(_path(spark, folder))) == _facts(raw_of_hadoop.listStatus(_path(spark, folder)))


def test_what_is_not_there_is_not_found(spark: SparkSession, ours: Any, folder: Path) -> None:
    for name in ("gone", "leads nowhere", "in a circle", "plain/within a file", "n" * 300):
        gone = _path(spark, folder / name)
        assert not ours.exists(gone)
        for ask in (ours.getFileStatus, ours.listStatus):
            with pytest.raises(Py4JJavaError, match=r"FileNotFoundException: File .* does not exist"):
                ask(gone)


def test_a_file_has_its_bytes_its_checksum_and_its_rights_without_a_process(
    spark: SparkSession, ours: Any, hadoops: Any, folder: Path
) -> None:
    for name, files in (("of ours", ours), ("of hadoop", hadoops)):
        out = files.create(_path(spark, folder / name))
        out.write(bytearray(b"rows"))
        out.close()
    mine, theirs = folder / "of ours", folder / "of hadoop"
    assert mine.read_bytes() == theirs.read_bytes() == b"rows"
    assert (folder / ".of ours.crc").read_bytes() == (folder / ".of hadoop.crc").read_bytes()
    assert mine.stat().st_mode == theirs.stat().st_mode


def test_rights_are_set_as_chmod_sets_them(spark: SparkSession, ours: Any, folder: Path) -> None:
    """A folder whose files belong to its group stays one."""
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o2775)
    for path, mode, expected in ((shared, 0o750, 0o2750), (folder / "plain", 0o600, 0o600), (shared, 0o1777, 0o3777)):
        ours.setPermission(_path(spark, path), _hadoop(spark).permission.FsPermission(f"{mode:o}"))
        assert oct(path.stat().st_mode & 0o7777) == oct(expected)


def test_a_timeline_that_was_listed_before_is_read_by_its_new_names_only(
    spark: SparkSession, ours: Any, tmp_path: Path
) -> None:
    timeline = tmp_path / "table" / ".hoodie" / "timeline"
    timeline.mkdir(parents=True)
    for number in range(3):
        (timeline / f"{number}.commit").write_text("first")
    before = _facts(ours.listStatus(_path(spark, timeline)))
    assert len(before) == 3
    os.utime(timeline / "1.commit", (1, 1))
    (timeline / "0.commit").unlink()
    (timeline / "3.commit").write_text("a new one")
    now = _facts(ours.listStatus(_path(spark, timeline)))
    assert [Path(path).name for path in sorted(now)] == ["1.commit", "2.commit", "3.commit"]
    assert {path: facts for path, facts in now.items() if path in before} == {
        path: facts for path, facts in before.items() if path in now
    }
    elsewhere = _facts(ours.listStatus(_path(spark, timeline.parent)))
    assert len(elsewhere) == 1


def _facts(statuses: Any) -> dict[str, tuple[Any, ...]]:
    return {
        status.getPath().toString(): (
            status.getLen(),
            status.isDirectory(),
            status.getModificationTime(),
            status.getAccessTime(),
            status.getBlockSize(),
            status.getReplication(),
            status.getPermission().toString(),
            status.getOwner(),
            status.getGroup(),
        )
        for status in statuses
    }


def _hadoop(spark: SparkSession) -> Any:
    return jvm(spark).org.apache.hadoop.fs


def _configuration(spark: SparkSession) -> Any:
    return jvm(spark).org.apache.spark.SparkContext.getOrCreate().hadoopConfiguration()


def _path(spark: SparkSession, path: Path) -> Any:
    """By its parts: as a text, `%` and `:` would mean something else."""
    return _hadoop(spark).Path("file", None, str(path))
