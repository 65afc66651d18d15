"""Static files keep their promises: tokens hold the raw values, scripts stay small, plotly finds what it looks for."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from lakehub.http.security_headers import POLICY

FRONTEND = Path(__file__).parents[2] / "frontend"
STATIC = FRONTEND / "static/frontend"
TEMPLATES = sorted(FRONTEND.rglob("*.html"))
RAW_COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\brgb\(|\bhsl\(")


@pytest.mark.parametrize("sheet", ["base.css", "components.css", "product.css", "plotly.css"])
def test_only_the_tokens_hold_raw_colours(sheet: str) -> None:
    lines = (STATIC / "css" / sheet).read_text().splitlines()
    colour_lines = [line for line in lines if RAW_COLOUR.search(line) and "::backdrop" not in line]
    assert colour_lines == []


@pytest.mark.parametrize("page", TEMPLATES, ids=lambda page: page.name)
def test_templates_hold_no_inline_script_style_or_asset_from_elsewhere(page: Path) -> None:
    source = page.read_text()
    assert not re.search(r"\sstyle=|\son\w+=\"|<style|javascript:", source)
    assert not re.search(r"<script(?![^>]*\ssrc=)", source)
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", source)


@pytest.mark.parametrize("script", sorted((STATIC / "js").glob("*.js")), ids=lambda script: script.name)
def test_a_script_is_one_small_behaviour(script: Path) -> None:
    assert len(script.read_text().splitlines()) <= 160


def test_the_policy_lets_nothing_inline_and_nothing_from_elsewhere() -> None:
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert "unsafe" not in POLICY
    assert "http" not in POLICY


def test_every_icon_that_is_used_is_in_the_sprite() -> None:
    sprite = (FRONTEND / "ui/templates/sprite.html").read_text()
    there = set(re.findall(r'id="i-([\w-]+)"', sprite))
    used = {name for page in TEMPLATES for name in re.findall(r'{% icon "([\w-]+)"', page.read_text())}
    assert used <= there
    states = (FRONTEND / "ui/states.py").read_text()
    assert set(re.findall(r'ShownState\("\w+", "(\w+)"', states)) <= there


def test_plotly_is_told_to_bring_no_style_of_its_own() -> None:
    """Both ids are what plotly's own code asks the page for; another version may ask for others."""
    script = files("plotly").joinpath("package_data/plotly.min.js").read_text()
    page = (FRONTEND / "results/templates/plot_scripts.html").read_text()
    maps = re.search(r'getElementById\("([0-9a-f]{64})"\)', script)
    assert maps is not None
    assert f'id="{maps[1]}"' in page
    assert "no-inline-styles" in script
    assert 'id="plotly.js-style-global" class="no-inline-styles"' in page
