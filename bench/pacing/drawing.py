"""Both figures as one SVG: bars for what the servers have counted, marks for what was allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 380, 260, 56, 210, 50
_INK, _FAINT, _BAR, _MARK = "#1f2933", "#cbd2d9", "#7b9acc", "#b44d12"


class Drawn(NamedTuple):
    """Keys a second."""

    label: str
    allowed: float
    achieved: float


def draw(alone: Sequence[Drawn], at_once: Sequence[Drawn]) -> str:
    """`alone`: by the number of region servers; `at_once`: by the dataset."""
    panels = _panel(alone, "One job, half of the cluster", "region servers")
    panels += f'<g transform="translate({_WIDTH} 0)">{_panel(at_once, "Three jobs at once", "datasets")}</g>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * _WIDTH} {_HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{_INK}">'
        "<title>Keys a second that jobs may ask of the Global Index, and that its region servers counted</title>"
        f'<rect width="{2 * _WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>{panels}</svg>\n'
    )


def _panel(drawn: Sequence[Drawn], title: str, below: str) -> str:
    top = _rounded_up(max(max(each.allowed, each.achieved) for each in drawn))
    per_key = (_BOTTOM - _TOP) / top
    step = (_WIDTH - _LEFT - 20) / len(drawn)
    lines = "".join(_line(_BOTTOM - top * part / 4 * per_key, top * part / 4) for part in range(5))
    bars = "".join(_bar(_LEFT + step * (place + 0.5), each, per_key) for place, each in enumerate(drawn))
    middle = (_LEFT + _WIDTH - 20) / 2
    return (
        f'<text x="{_LEFT}" y="20" font-weight="600">{escape(title)}</text>'
        f'<text x="{_LEFT}" y="36">keys/s: <tspan fill="{_MARK}">allowed —</tspan>, counted by the servers ▇</text>'
        f'{lines}{bars}<text x="{middle:.0f}" y="{_BOTTOM + 38}" text-anchor="middle">{escape(below)}</text>'
    )


def _line(height: float, value: float) -> str:
    return (
        f'<line x1="{_LEFT}" x2="{_WIDTH - 20}" y1="{height:.1f}" y2="{height:.1f}" stroke="{_FAINT}"/>'
        f'<text x="{_LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{value:,.0f}</text>'
    )


def _bar(middle: float, drawn: Drawn, per_key: float) -> str:
    top, mark = _BOTTOM - drawn.achieved * per_key, _BOTTOM - drawn.allowed * per_key
    return (
        f'<rect x="{middle - 22:.1f}" y="{top:.1f}" width="44" height="{_BOTTOM - top:.1f}" fill="{_BAR}"/>'
        f'<line x1="{middle - 32:.1f}" x2="{middle + 32:.1f}" y1="{mark:.1f}" y2="{mark:.1f}" stroke="{_MARK}" stroke-width="2"/>'
        f'<text x="{middle:.1f}" y="{_BOTTOM + 18}" text-anchor="middle">{escape(drawn.label)}</text>'
    )


def _rounded_up(value: float) -> float:
    """To one digit: 4,300 is 5,000."""
    scale = float(10 ** (len(str(int(value))) - 1))
    return scale * -(-value // scale)
