"""Moved: the module is lakehub.catalog.instants."""

from __future__ import annotations

from lakehub.catalog.instants import instant as instant
from lakehub.catalog.instants import wanted_range as wanted_range
