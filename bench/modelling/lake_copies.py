"""A lake as it was, for each way and each turn: the files of its tables are never changed once they are written, so a copy shares them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

from tests.spark.pipeline_lake import PipelineLake

_ABOUT_TABLE = ".hoodie"
"""The timeline and the properties of a table, which are copied."""
_numbers = count(1)


@contextmanager
def copied(lake: PipelineLake) -> Iterator[PipelineLake]:
    """Gone afterwards. Each has a path of its own, so that no cache has what another copy held."""
    folder = lake.folder.parent / f"copy-{next(_numbers)}"
    try:
        copy_files(lake.folder, folder)
        yield replace(lake, folder=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def copy_files(source: Path, target: Path) -> None:
    def copy(path: str, to: str) -> None:
        if _ABOUT_TABLE in Path(path).parts:
            shutil.copy2(path, to)
        else:
            os.link(path, to)

    shutil.copytree(source, target, copy_function=copy)
