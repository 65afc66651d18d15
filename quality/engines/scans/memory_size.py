"""Sizes of memory as DuckDB writes them."""

from __future__ import annotations

import re

_BYTES_PER_UNIT = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def parse_memory_size(memory: str) -> int:
    """A size as DuckDB writes it, such as 512MB."""
    number, unit = re.fullmatch(r"(\d+)\s*([A-Za-z]+)", memory).groups()  # type: ignore[union-attr]  # our own setting
    return int(number) * _BYTES_PER_UNIT[unit]
