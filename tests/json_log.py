"""What is logged meanwhile, as a program reads it with LAKEHUB_LOG_FORMAT=json."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lakehub.logs import line_formatter


@contextmanager
def json_log() -> Iterator[list[dict[str, Any]]]:
    """Filled at the end of the block: one object a line."""
    out, lines = io.StringIO(), []
    handler = logging.StreamHandler(out)
    handler.setFormatter(line_formatter("json"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        lines += map(json.loads, out.getvalue().splitlines())
