"""Which limited resources a unit takes: an engine, or one connection of an engine."""

from __future__ import annotations

from collections.abc import Mapping


def resource_limits(uses: str, by_engine: Mapping[str, int], by_connection: int) -> dict[str, int]:
    """The limited resources of what a unit uses, with their limits: of `sqlalchemy:ops` the engine and the connection."""
    engine, _, connection = uses.partition(":")
    limits = {engine: by_engine[engine]} if engine in by_engine else {}
    return limits | {uses: by_connection} if connection else limits
