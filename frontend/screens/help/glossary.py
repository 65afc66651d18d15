"""The glossary, read from `glossary.md`: the documentation site shows the same file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from django.utils.text import slugify

_GROUP_PREFIX = "## "
_TERM = re.compile(r"- \*\*(?P<name>[^*]+)\*\*: (?P<definition>.+)")
_CODE = re.compile(r"`([^`]+)`")


class BadGlossary(ValueError):
    """A line of the glossary is neither a group nor a term."""


@dataclass(frozen=True)
class TextPart:
    """A piece of a definition: plain text, or code."""

    text: str
    is_code: bool


@dataclass(frozen=True)
class GlossaryTerm:
    name: str
    definition: str

    @property
    def anchor(self) -> str:
        return slugify(self.name)

    @property
    def parts(self) -> tuple[TextPart, ...]:
        """The definition in pieces; every second one stands between backticks."""
        pieces = enumerate(_CODE.split(self.definition))
        return tuple(TextPart(text, bool(number % 2)) for number, text in pieces if text)


@dataclass(frozen=True)
class GlossaryGroup:
    name: str
    terms: tuple[GlossaryTerm, ...]

    @property
    def anchor(self) -> str:
        """Differs from the anchors of terms: a group and a term may have the same name."""
        return f"group-{slugify(self.name)}"


@lru_cache(maxsize=1)
def read_glossary() -> tuple[GlossaryGroup, ...]:
    """The groups in the order of the file. It is part of the package, so it is read once."""
    return parse_glossary(files("frontend.screens.help").joinpath("glossary.md").read_text(encoding="utf-8"))


def parse_glossary(text: str) -> tuple[GlossaryGroup, ...]:
    """The groups of a Markdown text; what stands before the first group is for readers of the file. Raises BadGlossary."""
    _, *sections = re.split(rf"^{_GROUP_PREFIX}", text, flags=re.MULTILINE)
    return tuple(_group_of(section) for section in sections)


def _group_of(section: str) -> GlossaryGroup:
    name, *lines = section.splitlines()
    return GlossaryGroup(name.strip(), tuple(_terms_of(lines)))


def _terms_of(lines: list[str]) -> Iterator[GlossaryTerm]:
    for line in filter(None, lines):
        matched = _TERM.fullmatch(line)
        if matched is None:
            raise BadGlossary(f"{line!r} is not a term. Write `- **Term**: One sentence.`")
        yield GlossaryTerm(matched["name"], matched["definition"])
