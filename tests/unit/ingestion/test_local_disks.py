"""A folder is on a disk of this machine where the mount that it lies in says so."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from ingestion.spark.tables.local_disks import is_on_local_disk

MOUNTS = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /lake rw,relatime shared:9 - nfs4 server:/lake rw,vers=4.2
31 30 254:1 / /lake/fast rw,relatime - xfs /dev/vdb rw
32 22 0:26 / /with\040space rw - fuse.s3fs s3fs rw
33 22 0:27 / /twice rw - nfs server:/a rw
34 22 0:28 / /twice rw master:1 - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("folder", "is_local"),
    [
        ("/", True),
        ("/srv/lake/orders", True),
        ("/lake", False),
        ("/lake/orders/not yet there", False),
        ("/lake/fast/orders", True),
        ("/lake/faster", False),
        ("/with space/orders", False),
        ("/twice", True),
    ],
)
def test_the_nearest_mount_says_it(tmp_path: Path, folder: str, is_local: bool) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert is_on_local_disk(PurePosixPath(folder), mounts) is is_local


def test_a_system_that_does_not_say_has_none(tmp_path: Path) -> None:
    assert not is_on_local_disk(PurePosixPath("/"), tmp_path / "no such file")
