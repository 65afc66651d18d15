"""Processes that come after others where a machine has too few processors for all."""

from __future__ import annotations

import logging
import os
from pathlib import Path

logger = logging.getLogger(__name__)


def come_last(niceness: int) -> None:
    """This process, and all that it starts, by so much more than now."""
    os.nice(niceness)
    come_last_in_session(os.getpid())


def come_last_in_session(leader: int) -> None:
    """The session of a process is as nice as this process is.

    Linux shares the processors among sessions first, and each begins with a niceness of 0: those of its processes count among
    themselves alone.
    """
    group = Path(f"/proc/{leader}/autogroup")
    try:
        if os.getsid(leader) == leader:
            group.write_text(str(os.getpriority(os.PRIO_PROCESS, 0)))
    except (FileNotFoundError, ProcessLookupError):
        logger.debug("No such group: the system has none, or the process %s has ended", leader)
    except OSError as problem:
        logger.warning("Long jobs get as much of the processors as all else: %s", problem)
