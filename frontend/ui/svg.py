"""Small drawings that the server makes: sparks, bars, segments. Geometry only; colours come from CSS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lakehub.kernel.interval import Interval


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


@dataclass(frozen=True)
class Bar:
    data: Interval
    state: str
    label: str


@dataclass(frozen=True)
class Lane:
    state: str
    label: str
    x: float
    width: float
    y: int


@dataclass(frozen=True)
class Lanes:
    """Ranges of data one under the other over a common time line."""

    name: str
    width: int
    height: int
    ticks: tuple[tuple[float, float, str], ...]
    """(where it begins, its middle, its name or nothing where there is no room)"""
    lanes: tuple[Lane, ...]
    description: str


_HEAD, _LANE = 26, 30
_ROOM_FOR_NAME = 68


def lanes(window: Interval, ticks: Sequence[tuple[datetime, str]], bars: Sequence[Bar], width: int, name: str) -> Lanes:
    edge = 8.0
    scale = (width - 2 * edge) / window.length.total_seconds()

    def x(at: datetime) -> float:
        inside = min(max(at, window.start), window.end)
        return round(edge + (inside - window.start).total_seconds() * scale, 1)

    starts = [max(at, window.start) for at, _ in ticks] + [window.end]
    step = (width - 2 * edge) / max(1, len(ticks))
    every = max(1, -(-_ROOM_FOR_NAME // max(1, int(step))))
    marks = tuple(
        (x(starts[at]), (x(starts[at]) + x(starts[at + 1])) / 2, label if at % every == 0 else "")
        for at, (_, label) in enumerate(ticks)
    )
    drawn = tuple(
        Lane(
            bar.state,
            bar.label,
            x(bar.data.start),
            round(max(4.0, x(bar.data.end) - x(bar.data.start)), 1),
            _HEAD + 6 + at * _LANE,
        )
        for at, bar in enumerate(bars)
    )
    return Lanes(name, width, _HEAD + 6 + len(drawn) * _LANE, marks, drawn, "; ".join(bar.label for bar in bars))
