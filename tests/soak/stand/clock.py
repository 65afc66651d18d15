"""The instance's clock, which can be set forth and back while it runs: a small library that is preloaded shows another time."""

from __future__ import annotations

import shutil
import struct
import subprocess
from datetime import timedelta
from pathlib import Path

_SOURCE = Path(__file__).with_name("wrong_clock.c")


def has_compiler() -> bool:
    return shutil.which("cc") is not None


class Clock:
    """In `folder`: the library, and the file that says how far the time is off."""

    def __init__(self, folder: Path) -> None:
        self._library, self._file = folder / "wrong_clock.so", folder / "clock"
        self._file.write_bytes(bytes(8))
        subprocess.run(
            ["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", self._library, _SOURCE, "-ldl", "-lpthread"],
            check=True,
        )

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "SOAK_CLOCK": str(self._file)}

    def set_off_by(self, offset: timedelta) -> None:
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", round(offset.total_seconds()) * 10**9))
