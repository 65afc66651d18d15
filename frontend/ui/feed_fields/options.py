"""The options of a feed as fields of a form, and as facts to read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from lakehub.catalog.datasets.feed_options import (
    FEED_OPTIONS,
    OFF,
    ON,
    FeedOption,
    effective_options_of,
    option_problems,
    takes_feed_options,
)
from lakehub.catalog.models import Dataset

_PREFIX = "feed-"
_GROUPED = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?", re.ASCII)
"""A comma between thousands is no decimal comma."""
_NUMBER = re.compile(r"-?\d{1,20}(\.\d{1,20})?(e[+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True)
class FeedOptionField:
    option: FeedOption
    value: str
    error: str

    @property
    def name(self) -> str:
        return f"{_PREFIX}{self.option.name}"

    @property
    def choices(self) -> tuple[str, ...]:
        """Empty where a number is typed."""
        return self.option.choices

    @property
    def default_text(self) -> str:
        return _shown(self.option.in_force({}))

    @property
    def bounds_text(self) -> str:
        if self.option.bounds is None:
            return ""
        least, most = map(_shown, self.option.bounds)
        return f"0, or from {least} to {most}." if self.option.zero_is_none else f"From {least} to {most}."


@dataclass(frozen=True)
class FeedOptionFact:
    label: str
    value: str
    is_set: bool


class FormWithFeedOptions:
    """What a form shows of the options. `values`: what was typed, by the names of the fields; `errors`: by what the use case refuses."""

    values: Mapping[str, str]
    errors: Mapping[str, str]

    @property
    def feed_options(self) -> list[FeedOptionField]:
        problems = option_problems(options_of_fields(self.values)) if "feed_options" in self.errors else {}
        return [
            FeedOptionField(option, self.values.get(f"{_PREFIX}{name}", ""), problems.get(name, ""))
            for name, option in FEED_OPTIONS.items()
        ]

    @property
    def feed_options_error(self) -> str:
        """Where no value is to blame by itself: the dataset takes no options, or not this index."""
        return "" if any(each.error for each in self.feed_options) else self.errors.get("feed_options", "")

    @property
    def opens_feed_options(self) -> bool:
        """Whether the fields are shown at once: some are set, or wrong."""
        return "feed_options" in self.errors or bool(options_of_fields(self.values))


def feed_option_facts(dataset: Dataset) -> list[FeedOptionFact]:
    """The effective value of each; none where no job loads the dataset."""
    return [
        FeedOptionFact(FEED_OPTIONS[name].label, _shown(value), name in dataset.feed.options)
        for name, value in effective_options_of(dataset).items()
    ]


def fields_of_dataset(dataset: Dataset) -> dict[str, str]:
    options = dataset.feed.options if takes_feed_options(dataset) else {}
    return {f"{_PREFIX}{name}": _typed(value) for name, value in options.items()}


def fields_from_post(posted: QueryDict) -> dict[str, str]:
    return {f"{_PREFIX}{name}": posted.get(f"{_PREFIX}{name}", "").strip() for name in FEED_OPTIONS}


def options_of_fields(values: Mapping[str, str]) -> dict[str, Any]:
    """As the use case takes them: an empty field is an option that is left out. What is no number stays a text, which it refuses."""
    texts = {name: values.get(f"{_PREFIX}{name}", "") for name in FEED_OPTIONS}
    return {name: _parse_value(FEED_OPTIONS[name], text) for name, text in texts.items() if text}


def _typed(value: object) -> str:
    return _shown(value) if isinstance(value, bool) else str(value)


def _parse_value(option: FeedOption, text: str) -> int | float | str | bool:
    if option.is_switch and text in (OFF, ON):
        return text == ON
    plain = text.replace(",", "") if _GROUPED.fullmatch(text) else text
    if option.bounds is None or not _NUMBER.fullmatch(plain):
        return text
    return int(plain) if plain.lstrip("-").isdecimal() else float(plain)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return ON if value else OFF
    return f"{value:,}" if isinstance(value, int | float) else str(value)
