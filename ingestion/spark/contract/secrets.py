"""The secrets of a job, handed to its Python by a named pipe: neither on the disk nor in the environment of a JVM."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_MAX_BYTES = 60_000
"""What a pipe of Linux keeps until somebody reads it, with some to spare."""


@contextmanager
def offered_secrets(path: Path, secrets: Mapping[str, str]) -> Iterator[Path]:
    """A pipe at `path` that holds them for one reader, as long as the block. Only this user may open it. Raises ValueError."""
    text = json.dumps(dict(secrets)).encode() + b"\n"
    if len(text) > _MAX_BYTES:
        raise ValueError(f"The secrets of the job take {len(text)} bytes; {_MAX_BYTES} are the most.")
    path.unlink(missing_ok=True)
    os.mkfifo(path, mode=0o600)
    # Both ends are open here, so that neither this process nor one that never comes to read waits for the other.
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(pipe, text)
        yield path
    finally:
        os.close(pipe)
        path.unlink(missing_ok=True)


def read_secrets(path: Path) -> dict[str, str]:
    """Raises OSError where there is no such pipe, ValueError where nobody offers them any more."""
    # Without waiting: they were offered before, or never will be.
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        text = os.read(pipe, _MAX_BYTES)
    finally:
        os.close(pipe)
    if not text.endswith(b"\n"):
        raise ValueError(
            f"Nobody offers the secrets of the job at {path}: its launcher has ended, or they were read before."
        )
    return dict(json.loads(text))


def wait_for_end_of_offer(path: Path) -> None:
    """Returns when the process that offered the secrets has ended, however it did, or offers them no more. They were read before."""
    try:
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    try:
        os.set_blocking(pipe, True)
        os.read(pipe, 1)  # nothing more is written; where nobody may write any more, it ends
    finally:
        os.close(pipe)
