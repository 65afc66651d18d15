"""Small drawings that the server makes: sparks, bars, segments. Geometry only; colours come from CSS."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
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


Slot = tuple[float | None, float | None]
"""A lower and an upper value; None: there is none."""


@dataclass(frozen=True)
class StepChart:
    """Values over equal slots of time: steps that are filled, a line of others, and slots that are marked from top to base."""

    name: str
    width: int
    height: int
    areas: str
    lines: str
    marked: str
    levels: tuple[tuple[float, str], ...]
    """(height, its value in words)"""
    ticks: tuple[tuple[float, str], ...]
    left: int
    base: int


_CHART_LEFT, _CHART_TOP, _BELOW = 60, 8, 22


@dataclass(frozen=True)
class _Frame:
    """`share`: of the height that a value has."""

    slots: int
    width: int
    base: int
    share: Callable[[float], float]

    def x(self, slot: int) -> float:
        return round(_CHART_LEFT + slot * (self.width - _CHART_LEFT - 4) / self.slots, 1)

    def y(self, value: float) -> float:
        return round(self.base - self.share(value) * (self.base - _CHART_TOP), 1)

    def column(self, slot: int, top: float) -> str:
        return f"M{self.x(slot)} {self.base}V{top}H{self.x(slot + 1)}V{self.base}Z"


def quantile_chart(
    slots: Sequence[Slot], ticks: Sequence[tuple[int, str]], label: Callable[[float], str], width: int, name: str
) -> StepChart:
    """Two values of 1 or more by their logarithms: the upper as an area, the lower as a line; where there is none, neither.

    `ticks`: the slot and its name. `label`: a value in words."""
    top = max([4.0, *(upper for _, upper in slots if upper is not None)])
    frame = _Frame(len(slots), width, 112, lambda value: math.log(max(1.0, value)) / math.log(top))
    areas, lines = [], []
    for slot, (lower, upper) in enumerate(slots):
        if upper is not None:
            areas.append(frame.column(slot, frame.y(upper)))
        if lower is not None:
            goes_on = slot > 0 and slots[slot - 1][0] is not None
            step = f"V{frame.y(lower)}H{frame.x(slot + 1)}"
            lines.append(step if goes_on else f"M{frame.x(slot)} {frame.y(lower)}H{frame.x(slot + 1)}")
    levels = [(value, label(value)) for value in (1.0, math.sqrt(top), top)]
    return _chart(frame, name, levels, ticks, areas=areas, lines=lines)


def count_chart(
    counts: Sequence[int | None],
    marked: Collection[int],
    ticks: Sequence[tuple[int, str]],
    label: Callable[[float], str],
    width: int,
    name: str,
) -> StepChart:
    """Whole numbers from 0 on; None: there is none. One that is not 0 is seen, however small it is. `marked`: slots. `ticks`, `label`: as above."""
    top = max([1, *(count for count in counts if count is not None)])
    frame = _Frame(len(counts), width, 64, lambda value: value / top)
    areas = [frame.column(slot, min(frame.y(count), frame.base - 1.0)) for slot, count in enumerate(counts) if count]
    marks = [frame.column(slot, _CHART_TOP) for slot in sorted(marked)]
    return _chart(frame, name, [(0, label(0)), (top, label(top))], ticks, areas=areas, marked=marks)


def _chart(
    frame: _Frame,
    name: str,
    levels: Sequence[tuple[float, str]],
    ticks: Sequence[tuple[int, str]],
    *,
    areas: Sequence[str],
    lines: Sequence[str] = (),
    marked: Sequence[str] = (),
) -> StepChart:
    heights = tuple((frame.y(value), text) for value, text in levels)
    places = tuple((frame.x(slot), text) for slot, text in ticks)
    drawn = "".join(areas), "".join(lines), "".join(marked)
    return StepChart(name, frame.width, frame.base + _BELOW, *drawn, heights, places, _CHART_LEFT, frame.base)
