"""Memory as Spark writes it: `4g` or `512m`; a number alone is of MiB."""

from __future__ import annotations

import re

_MEMORY = re.compile(r"([0-9]{1,10})([kmgt]?)b?", re.IGNORECASE)
_MIB = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024**2}


def memory_mib(text: str) -> int | None:
    """None: it is not written so."""
    match = _MEMORY.fullmatch(text.strip())
    return None if match is None else int(int(match[1]) * _MIB[match[2].lower()])


def memory_text(mib: int) -> str:
    return f"{mib // 1024}g" if mib % 1024 == 0 else f"{mib}m"
