"""The documentation site builds without a warning and loads nothing from elsewhere; links of the pages outside docs/ lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from pymdownx.slugs import slugify

PROJECT = Path(settings.BASE_DIR)
OUTSIDE = [PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
LOADED = re.compile(r"""<(?:script|img|iframe|source)\b[^>]*\ssrc=["']?((?:https?:)?//[^"'\s>]+)""")
A_LINK_TAG = re.compile(r"<link\b[^>]*>")
FROM_ELSEWHERE = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")
A_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
A_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
A_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    assert {f"{page.stem}.html" for page in (PROJECT / "docs").glob("*.md")} <= {page.name for page in site.iterdir()}


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert LOADED.findall(text) == [], page.name
        assert [tag for tag in A_LINK_TAG.findall(text) if "//" in tag and 'rel="canonical"' not in tag] == [], (
            page.name
        )
        # The theme would fetch a library to draw these.
        assert 'class="mermaid"' not in text, page.name


def test_styles_load_nothing_from_elsewhere(site: Path) -> None:
    for style in site.rglob("*.css"):
        assert FROM_ELSEWHERE.findall(style.read_text()) == [], style.name


def test_only_documentation_is_in_it(site: Path) -> None:
    assert list(site.rglob("*.py")) == []


def links() -> list[tuple[Path, str]]:
    return [
        (page, link)
        for page in OUTSIDE
        for link in A_LINK.findall(A_FENCE.sub("", page.read_text()))
        if "://" not in link and not link.startswith("mailto:")
    ]


@pytest.mark.parametrize(
    ("page", "link"), [pytest.param(page, link, id=f"{page.name}:{link}") for page, link in links()]
)
def test_a_link_leads_to_a_file_and_an_anchor_of_it(page: Path, link: str) -> None:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    assert target.exists(), f"{page.name}: {link}"
    if anchor:
        assert anchor in anchors(target), f"{page.name}: {link}"


def anchors(page: Path) -> set[str]:
    """As the code host and the site make them."""
    slug = slugify(case="lower")
    return {slug(heading.replace("`", ""), "-") for heading in A_HEADING.findall(A_FENCE.sub("", page.read_text()))}
