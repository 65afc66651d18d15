"""Whole numbers as people type them and as links carry them."""

from __future__ import annotations

MAX_DIGITS = 9
"""So many fit a column of the database, and a timedelta's days."""


def parse_whole_number(text: str) -> int | None:
    """The number that plain digits write; None for anything else (`²` is a digit, too) and for what is too long."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None
