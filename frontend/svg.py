"""Small drawings that the server makes: sparks, bars, segments. Geometry only; colours come from CSS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spark:
    """A line of the last values, its end marked. Empty `path`: there is nothing to draw yet."""

    width: int
    height: int
    path: str
    end_x: float
    end_y: float


def spark(values: Sequence[float], width: int = 72, height: int = 20) -> Spark:
    if not values:
        return Spark(width, height, "", 0, 0)
    low, high = min(values), max(values)
    # One flat value lies on the base line; a line alone would have no extent to scale by.
    spread = (high - low) or 1.0
    step = (width - 3) / max(1, len(values) - 1)
    points = [(1 + step * at, height - 3 - (value - low) / spread * (height - 6)) for at, value in enumerate(values)]
    if len(points) == 1:
        points = [(1.0, points[0][1]), (width - 2.0, points[0][1])]
    return Spark(
        width,
        height,
        "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points),
        round(points[-1][0], 1),
        round(points[-1][1], 1),
    )


@dataclass(frozen=True)
class Segment:
    state: str
    x: float
    width: float


def segments(states: Sequence[str], gap: float = 1.2) -> list[Segment]:
    """Equal pieces of a bar of 100, one a state."""
    if not states:
        return []
    step = (100 + gap) / len(states)
    return [Segment(state, round(step * at, 2), round(step - gap, 2)) for at, state in enumerate(states)]
