"""Named places where a test may kill the process, to show that nothing is lost and nothing doubled.

`LAKEHUB_FAILPOINT=name` ends the process with SIGKILL the first time that it reaches `name`. Unset (always, in production), a failpoint is one dictionary look-up.
"""

from __future__ import annotations

import os
import signal

FAILPOINTS = (
    "ingestion.before_write",
    "ingestion.inside_commit",
    "ingestion.after_commit",
    "ingestion.between_commits",
    "ingestion.after_history",
    "ingestion.after_tombstones",
    "ingestion.after_emptying",
    "ingestion.after_rename",
    "index.after_reading",
    "index.before_load",
    "index.after_load",
    "index.after_entries",
    "quality.before_result",
    "incidents.before_message",
)


def reach(name: str) -> None:
    """Die here if the environment says so."""
    if os.environ.get("LAKEHUB_FAILPOINT") == name:
        os.kill(os.getpid(), signal.SIGKILL)


def is_armed(name: str) -> bool:
    """True where `name` is the failpoint set; for places that need more than a kill, as within a commit."""
    return os.environ.get("LAKEHUB_FAILPOINT") == name
