"""The settings of a dataset as a form: the tier's value beside each SLA, and what was typed as the use case takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any

from django.http import QueryDict
from django.utils import timezone

from frontend.ui import words
from frontend.ui.feed_fields import hidden_columns as hidden_column_fields
from frontend.ui.feed_fields import options as feed_option_fields
from frontend.ui.feed_fields.hidden_columns import FormWithHiddenColumns
from frontend.ui.feed_fields.options import FormWithFeedOptions
from frontend.ui.form_actions import parse_local_time
from frontend.ui.whole_numbers import parse_whole_number
from lakehub.catalog.datasets.changes import POLICY_FIELDS, current_value
from lakehub.catalog.datasets.feed_options import takes_feed_options
from lakehub.catalog.models import Dataset, FeedKind
from lakehub.catalog.storages import is_captured
from lakehub.kernel.errors import Refused
from quality.domain.language import ExpressionError
from quality.domain.language.parser import parse_literal
from quality.domain.slas import TIERS, BadOverride, Slas, format_sla, slas_for_tier
from quality.domain.timeliness.production_calendar import CALENDAR_OVERRIDES, BadCalendar, holidays_text, parse_calendar

LABELS = {
    "freshness": ("Whole within", "how long after its end a partition must be complete"),
    "completeness": ("Complete above", "of the rows upstream"),
    "duplicates": ("Duplicates below", "of the rows"),
    "consistency": ("Same in each dc above", "of the rows of another data center"),
    "sustain": ("Fails after", "a failure that is shorter is a warning"),
    "cadence": ("Looks every", "at tables that are looked at as a whole"),
    "rerun_base": ("First rerun after", "of what fails"),
    "rerun_cap": ("Reruns at most every", "of what fails"),
    "debounce": ("Gathers changes for", "before a changed partition is tested again"),
    "compared": ("Keys compared", "with other data centers, chosen by hash"),
    "sampled": ("Rows sampled", "of an upstream outside the lake, looked up here by each run"),
    "severity": ("Urgency", "page, message or mail"),
}
"""In the order of the page. The grace of a tier is for onboarding only."""
SCHEMA_POLICY_LABELS = {
    "incident": "every change opens an incident",
    "breaking": "a column that is gone or retyped opens an incident, one that was added is shown",
    "show": "every change is shown, and opens no incident",
}


@dataclass(frozen=True)
class SlaField:
    name: str
    label: str
    hint: str
    of_tier: str
    override: str
    """Empty: the tier's."""


@dataclass(frozen=True)
class SettingsForm(FormWithFeedOptions, FormWithHiddenColumns):
    values: Mapping[str, str]
    paused: bool
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def tier(self) -> int:
        number = parse_whole_number(self.values["tier"])
        return number if number in TIERS else -1

    @property
    def slas(self) -> list[SlaField]:
        """Of the tier that is chosen in the form."""
        of_tier = TIERS.get(self.tier, TIERS[max(TIERS)])
        return [
            SlaField(name, *_sla_label(name), format_sla(getattr(of_tier, name)), self.values.get(f"sla-{name}", ""))
            for name in _sla_names()
        ]


def _sla_names() -> list[str]:
    names = [sla_field.name for sla_field in fields(Slas) if sla_field.name != "grace"]
    return sorted(names, key=lambda name: list(LABELS).index(name) if name in LABELS else len(LABELS))


def _sla_label(name: str) -> tuple[str, str]:
    return LABELS.get(name, (name.replace("_", " ").capitalize(), ""))


def form_of_dataset(dataset: Dataset) -> SettingsForm:
    feed = dataset.feed_or_none
    overrides = {f"sla-{name}": str(value) for name, value in dataset.overrides.items()}
    if dataset.freshness_sla is not None:
        overrides["sla-freshness"] = format_sla(dataset.freshness_sla)
    local = timezone.localtime(dataset.grace_until) if dataset.grace_until else None
    values = {
        "tier": str(dataset.tier),
        "kind": dataset.kind,
        "description": dataset.description,
        "primary_key": ", ".join(dataset.primary_key),
        "event_time": dataset.event_time,
        "grace_until": f"{local:%Y-%m-%dT%H:%M}" if local else "",
        "every": format_sla(feed.every) if feed else "",
        "calendar": holidays_text(dataset.overrides.get("calendar", "")),
        "holidays": holidays_text(dataset.overrides.get("holidays", "")),
        "schema_changes": dataset.schema_changes,
        "not_compared": ", ".join(dataset.not_compared),
        "version": str(dataset.metadata_version),
        **overrides,
        **feed_option_fields.fields_of_dataset(dataset),
        **hidden_column_fields.fields_of_dataset(dataset),
    }
    return SettingsForm(values, bool(feed and feed.paused))


def form_from_post(posted: QueryDict) -> SettingsForm:
    names = (
        *("tier", "kind", "description", "primary_key", "event_time", "grace_until", "every", "version"),
        *CALENDAR_OVERRIDES,
        *POLICY_FIELDS,
    )
    slas = [f"sla-{name}" for name in _sla_names()]
    values = {name: posted.get(name, "").strip() for name in (*names, *slas)}
    values |= feed_option_fields.fields_from_post(posted) | hidden_column_fields.fields_from_post(posted)
    return SettingsForm(values, "paused" in posted)


def changed_settings(dataset: Dataset, form: SettingsForm) -> dict[str, Any]:
    """What differs from the dataset as it is, for the use case. Raises Refused with every field that cannot be read."""
    problems: dict[str, str] = {}
    submitted: dict[str, Any] = {"tier": form.tier, "description": form.values["description"]}
    submitted["kind"] = form.values["kind"] or dataset.kind
    submitted["primary_key"] = _split(form.values["primary_key"])
    submitted["not_compared"] = _split(form.values["not_compared"])
    submitted["schema_changes"] = form.values["schema_changes"] or dataset.schema_changes
    submitted["event_time"] = form.values["event_time"]
    submitted["grace_until"] = _parse_field(
        problems, "grace_until", lambda: _parse_grace_until(form.values["grace_until"], dataset)
    )
    submitted |= _parse_slas(problems, form)
    submitted["overrides"] |= _parse_production_calendar(problems, dataset, form) | _overrides_not_on_page(dataset)
    feed = dataset.feed_or_none
    if feed is not None:
        submitted["every"] = _parse_field(problems, "every", lambda: _parse_duration(form.values["every"]))
        submitted["paused"] = form.paused
    if takes_feed_options(dataset):
        submitted["feed_options"] = feed_option_fields.options_of_fields(form.values)
    if takes_hidden_columns(dataset):
        submitted |= hidden_column_fields.names_of_fields(form.values)
    if form.tier < 0:
        problems["tier"] = f"There is no tier `{form.values['tier']}`: tiers go from 0 (highest) to 5."
    if problems:
        raise Refused.for_fields(problems)
    return {name: value for name, value in submitted.items() if value != current_value(dataset, name)}


def takes_hidden_columns(dataset: Dataset) -> bool:
    """Its table is captured."""
    feed = dataset.feed_or_none
    return (
        takes_feed_options(dataset)
        and feed is not None
        and feed.connection is not None
        and is_captured(feed.connection.plugin)
    )


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _parse_slas(problems: dict[str, str], form: SettingsForm) -> dict[str, Any]:
    overrides, freshness = {}, None
    for name in _sla_names():
        text = form.values.get(f"sla-{name}", "")
        if not text:
            continue
        try:
            read = getattr(slas_for_tier(max(form.tier, 0), {name: text}), name)
        except BadOverride as bad:
            problems[f"sla-{name}"] = str(bad)
            continue
        if name == "freshness":
            freshness = read
        else:
            overrides[name] = text
    return {"overrides": overrides, "freshness_sla": freshness}


def _parse_production_calendar(problems: dict[str, str], dataset: Dataset, form: SettingsForm) -> dict[str, str]:
    """When it is produced, as far as a calendar says."""
    given = {name: form.values.get(name, "") for name in CALENDAR_OVERRIDES}
    try:
        parse_calendar(given["calendar"], given["holidays"], dataset.zone)
    except BadCalendar as bad:
        problems[bad.field] = str(bad)
    # Holidays may have been given as a list: what the field shows of it is no change.
    was = dataset.overrides
    return {
        name: was[name] if text == holidays_text(was.get(name, "")) else text for name, text in given.items() if text
    }


def _overrides_not_on_page(dataset: Dataset) -> dict[str, Any]:
    """What the page does not show stays."""
    shown_here = {*_sla_names(), *CALENDAR_OVERRIDES}
    return {name: value for name, value in dataset.overrides.items() if name not in shown_here}


def _parse_field(problems: dict[str, str], name: str, reading: Callable[[], Any]) -> Any:
    try:
        return reading()
    except Refused as refused:
        problems[name] = str(refused)
        return None


def _parse_grace_until(text: str, dataset: Dataset) -> datetime | None:
    """As typed; the minute that the field shows is not a change of the second that is stored."""
    entered = parse_local_time(text, timezone.make_aware)
    stored = dataset.grace_until
    same = entered is not None and stored is not None and abs((entered - stored).total_seconds()) < 60
    return stored if same else entered


def _parse_duration(text: str) -> timedelta:
    try:
        value = parse_literal(text).value if text else None
    except ExpressionError:
        value = None
    if not isinstance(value, timedelta):
        raise Refused(f"`{text}` is no length of time: write 30s, 5m or 1h.")
    return value


def key_hint(dataset: Dataset) -> str:
    feed = dataset.feed_or_none
    check = ", checked against the real rows" if feed is not None and feed.kind == FeedKind.CONNECTION else ""
    return f"Columns with a comma between{check}. Empty: the duplicates test is skipped."


def next_production_text(dataset: Dataset, *, now: datetime) -> str:
    """What the calendar means next, in words; how to write one where there is none."""
    calendar, holidays = (holidays_text(dataset.overrides.get(name, "")) for name in CALENDAR_OVERRIDES)
    try:
        following = parse_calendar(calendar, holidays, dataset.zone).next_after(now) if calendar else None
    except BadCalendar as bad:
        return str(bad)
    if following is None:
        return "Minute, hour, day, month, weekday: 0 6 * * mon-fri. Empty: every partition is expected."
    local = following.astimezone(dataset.zone)
    return f"Next at {local:%H:%M} on {words.weekday(local.date())}, {dataset.partition_tz}."
