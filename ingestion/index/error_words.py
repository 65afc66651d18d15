"""What of HBase's errors people are shown: regions are named by the record keys that they begin with, and errors of rows by these, so most are their class."""

from __future__ import annotations

import logging
from collections.abc import Sequence

logger = logging.getLogger(__name__)
_LONGEST = 300
_SAYS_NO_KEY = frozenset(
    {
        "ConnectException",
        "NoRouteToHostException",
        "UnknownHostException",
        "FileNotFoundException",
        "AccessDeniedException",
        "AccessControlException",
        "IllegalArgumentException",
        "NamespaceNotFoundException",
        "TableExistsException",
        "TableNotFoundException",
        "MasterNotRunningException",
        "ZooKeeperConnectionException",
        "KeeperException$ConnectionLossException",
        "KeeperException$NoNodeException",
    }
)
"""Of the network, files, rights and names: their words are shown too."""


def class_of(error: str) -> str:
    """`error`: `class: message`. Without its package: versions of HBase differ in them."""
    return error.partition(":")[0].rpartition(".")[2]


def in_words(errors: Sequence[str]) -> str:
    """`errors`: an error, and what it came of. The first and the innermost; the log has all of them whole."""
    logger.info("HBase says: %s", "; because of ".join(errors))
    lines = [_shown(error) for error in errors]
    return lines[0] if lines[-1] in lines[0] else f"{lines[0]} because of {lines[-1]}"


def _shown(error: str) -> str:
    name = class_of(error)
    if name not in _SAYS_NO_KEY:
        # What is no name of a class may be anything.
        return name if name.replace("$", "").isalnum() else "an error without a class"
    return "".join(letter for letter in error.partition("\n")[0][:_LONGEST] if letter.isprintable())
