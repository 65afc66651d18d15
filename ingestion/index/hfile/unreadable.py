"""Why a file cannot be read."""

from __future__ import annotations


class UnreadableHFile(ValueError):
    """The file is no HFile, is damaged, or is compressed, encoded or encrypted; says which."""
