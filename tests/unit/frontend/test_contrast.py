"""The tokens: WCAG AA in both themes, and verdict marks that colour-blind eyes can tell apart."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

CSS = (Path(__file__).parents[3] / "frontend/static/frontend/css/tokens.css").read_text()
TOKENS = {name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", CSS)}
THEMES = {"light": 0, "dark": 1}
SURFACES = ("bg", "surface", "sunken", "hover", "selected")
VERDICTS = ("pass", "warn", "fail", "unknown")
TEXT, SHAPE = 4.5, 3.0

PAIRS = [
    *((ink, ground, TEXT) for ink in ("ink", "ink-2", "ink-3", "accent") for ground in SURFACES),
    *((verdict, ground, TEXT) for verdict in VERDICTS for ground in (*SURFACES, f"{verdict}-soft")),
    *((f"{verdict}-mark", ground, SHAPE) for verdict in VERDICTS for ground in (*SURFACES, f"{verdict}-soft")),
    *(("on-mark", f"{verdict}-mark", SHAPE) for verdict in VERDICTS),
    *((ink, f"{verdict}-soft", TEXT) for verdict in VERDICTS for ink in ("ink-2", "ink-3")),
    ("accent", "accent-soft", TEXT),
    ("ink-3", "accent-soft", TEXT),
    ("on-solid", "solid", TEXT),
    ("quiet-mark", "surface", SHAPE),
    *(("line-control", ground, SHAPE) for ground in ("bg", "surface", "selected")),
]

# Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB
BLINDNESS = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
LEAST_DISTANCE = 12
"""CIE 1976; below it two marks are told apart by shape and word only."""


@pytest.mark.parametrize("theme", THEMES)
def test_every_pair_that_is_used_has_enough_contrast(theme: str) -> None:
    at = THEMES[theme]
    contrasts = {(ink, ground): contrast(TOKENS[ink][at], TOKENS[ground][at]) for ink, ground, _ in PAIRS}
    weak = [
        f"{ink} on {ground}: {contrasts[ink, ground]:.2f} < {needs}"
        for ink, ground, needs in PAIRS
        if contrasts[ink, ground] < needs
    ]
    assert weak == []
    assert len(PAIRS) == 87


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("kind", BLINDNESS)
def test_verdict_marks_stay_apart_for_colour_blind_eyes(theme: str, kind: str) -> None:
    seen = {verdict: lab(blind(TOKENS[f"{verdict}-mark"][THEMES[theme]], kind)) for verdict in VERDICTS}
    gaps = {(a, b): distance(seen[a], seen[b]) for a, b in combinations(VERDICTS, 2)}
    assert min(gaps.values()) >= LEAST_DISTANCE, gaps


def test_a_known_pair_is_computed_right() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def linear(colour: str) -> list[float]:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return [channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels]


def contrast(ink: str, ground: str) -> float:
    weights = (0.2126, 0.7152, 0.0722)
    dark, light = sorted(sum(w * c for w, c in zip(weights, linear(colour), strict=True)) for colour in (ink, ground))
    return (light + 0.05) / (dark + 0.05)


def blind(colour: str, kind: str) -> list[float]:
    rgb = linear(colour)
    return [sum(m * c for m, c in zip(row, rgb, strict=True)) for row in BLINDNESS[kind]]


def lab(rgb: list[float]) -> tuple[float, float, float]:
    r, g, b = (min(1.0, max(0.0, channel)) for channel in rgb)
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (float(t ** (1 / 3)) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(first: tuple[float, ...], other: tuple[float, ...]) -> float:
    return float(sum((p - q) ** 2 for p, q in zip(first, other, strict=True)) ** 0.5)
