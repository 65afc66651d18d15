"""Few looks at sources at once in a process: whoever answers people has threads left while sources are silent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from lakehub.catalog.metadata import MetadataUnavailable

MAX_LOOKS = 2
"""Half of the threads of a web process, which the Procfile says."""
WAIT_S = 2.0
_places = BoundedSemaphore(MAX_LOOKS)


@contextmanager
def place_for_a_look() -> Iterator[None]:
    """Raises MetadataUnavailable where others have all places for longer than WAIT_S."""
    if not _places.acquire(timeout=WAIT_S):
        raise MetadataUnavailable(
            f"{MAX_LOOKS} looks at databases are under way, and no more are taken at once. Try again in a minute."
        )
    try:
        yield
    finally:
        _places.release()
