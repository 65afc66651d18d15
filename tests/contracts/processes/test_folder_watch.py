from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakehub.processes import folder_watch
from lakehub.processes.folder_watch import FolderWatch
from tests.polling import scaled

LONG_S = 60.0


def put(folder: Path) -> None:
    (folder / ".part").write_text("whole")
    (folder / ".part").rename(folder / f"{time.time_ns()}.msg")


def test_a_wait_ends_when_a_file_appears(tmp_path: Path) -> None:
    watch = FolderWatch(tmp_path)
    begun = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(watch.wait, LONG_S)
        put(tmp_path)
        waiting.result(LONG_S / 2)
    assert time.monotonic() - begun < LONG_S / 2
    watch.close()


def test_what_appeared_between_two_waits_ends_the_next_one(tmp_path: Path) -> None:
    watch = FolderWatch(tmp_path)
    put(tmp_path)
    begun = time.monotonic()
    watch.wait(scaled(LONG_S))
    assert time.monotonic() - begun < LONG_S / 2
    watch.close()


def test_a_folder_that_is_gone_is_polled_and_watched_again_when_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "queue"
    folder.mkdir()
    watch = FolderWatch(folder)
    shutil.rmtree(folder)
    begun = time.monotonic()
    watch.wait(scaled(LONG_S))
    folder.mkdir()
    watch.wait(0.01)
    put(folder)
    watch.wait(scaled(LONG_S))
    assert time.monotonic() - begun < LONG_S / 2
    watch.close()


def test_without_the_kernels_help_a_wait_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_watch, "_LIBC", object())
    begun = time.monotonic()
    FolderWatch(tmp_path).wait(scaled(LONG_S))
    assert time.monotonic() - begun < LONG_S / 2
