"""Hadoop's settings without the files that they came from.

Hudi sends Hadoop's settings with most of what it lets Spark's tasks do. They are about a thousand, and with each goes the list of files that set it,
every name compressed by itself, which nobody reads there: a sixth of what a commit of a few rows costs.
"""

from __future__ import annotations

import logging
from typing import Any

from py4j.protocol import Py4JError

logger = logging.getLogger(__name__)


def forget(configuration: Any) -> None:
    """Also for all that are copied from it. `configuration`: a Configuration of Hadoop's in the JVM, all of whose files are read by now."""
    configuration.size()  # else they would be read later
    try:
        field = configuration.getClass().getDeclaredField("updatingResource")
        field.setAccessible(True)
        field.get(configuration).clear()
    except Py4JError as error:
        logger.info("Hadoop's settings keep the files that they came from: %s", str(error).splitlines()[0])
