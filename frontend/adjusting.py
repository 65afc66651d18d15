"""The settings of a dataset as a form: the tier's value beside each SLA, and what was typed as the use case takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any

from django.http import QueryDict
from django.utils import timezone

from frontend import words
from frontend.acting import instant
from frontend.numbers import whole
from lakehub.catalog.models import Dataset, Feed
from lakehub.kernel.errors import Refused
from quality.domain.expression import ExpressionError
from quality.domain.expression.parser import parse_literal
from quality.domain.production import BadCalendar, production, text_of
from quality.domain.tiers import PRODUCTION, TIERS, BadOverride, Slas, shown, slas_of

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
    "severity": ("Urgency", "page, message or mail"),
}
"""In the order of the page. The grace of a tier is for onboarding only."""


@dataclass(frozen=True)
class Sla:
    name: str
    label: str
    hint: str
    of_tier: str
    own: str
    """Empty: the tier's."""


@dataclass(frozen=True)
class Form:
    values: Mapping[str, str]
    paused: bool
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def tier(self) -> int:
        number = whole(self.values["tier"])
        return number if number in TIERS else -1

    @property
    def slas(self) -> list[Sla]:
        """Of the tier that is chosen in the form."""
        of_tier = TIERS.get(self.tier, TIERS[max(TIERS)])
        return [
            Sla(name, *_label(name), shown(getattr(of_tier, name)), self.values.get(f"sla-{name}", ""))
            for name in _names()
        ]


def _names() -> list[str]:
    known = [one.name for one in fields(Slas) if one.name != "grace"]
    return sorted(known, key=lambda name: list(LABELS).index(name) if name in LABELS else len(LABELS))


def _label(name: str) -> tuple[str, str]:
    return LABELS.get(name, (name.replace("_", " ").capitalize(), ""))


def of_dataset(dataset: Dataset) -> Form:
    feed = _feed(dataset)
    overrides = {f"sla-{name}": str(value) for name, value in dataset.overrides.items()}
    if dataset.freshness_sla is not None:
        overrides["sla-freshness"] = shown(dataset.freshness_sla)
    local = timezone.localtime(dataset.grace_until) if dataset.grace_until else None
    values = {
        "tier": str(dataset.tier),
        "description": dataset.description,
        "primary_key": ", ".join(dataset.primary_key),
        "event_time": dataset.event_time,
        "grace_until": f"{local:%Y-%m-%dT%H:%M}" if local else "",
        "every": shown(feed.every) if feed else "",
        "calendar": text_of(dataset.overrides.get("calendar", "")),
        "holidays": text_of(dataset.overrides.get("holidays", "")),
        "version": str(dataset.metadata_version),
        **overrides,
    }
    return Form(values, bool(feed and feed.paused))


def typed(said: QueryDict) -> Form:
    names = (
        *("tier", "description", "primary_key", "event_time", "grace_until", "every", "version"),
        *PRODUCTION,
    )
    slas = [f"sla-{name}" for name in _names()]
    return Form({name: said.get(name, "").strip() for name in (*names, *slas)}, "paused" in said)


def changes(dataset: Dataset, form: Form) -> dict[str, Any]:
    """What differs from the dataset as it is, for the use case. Raises Refused with every field that cannot be read."""
    problems: dict[str, str] = {}
    wanted: dict[str, Any] = {"tier": form.tier, "description": form.values["description"]}
    wanted["primary_key"] = [word.strip() for word in form.values["primary_key"].split(",") if word.strip()]
    wanted["event_time"] = form.values["event_time"]
    wanted["grace_until"] = _read(problems, "grace_until", lambda: _until(form.values["grace_until"], dataset))
    wanted |= _slas(problems, form)
    wanted["overrides"] |= _production(problems, dataset, form) | _kept(dataset)
    feed = _feed(dataset)
    if feed is not None:
        wanted["every"] = _read(problems, "every", lambda: _length(form.values["every"]))
        wanted["paused"] = form.paused
    if form.tier < 0:
        problems["tier"] = f"There is no tier `{form.values['tier']}`: tiers go from 0 (highest) to 5."
    if problems:
        raise Refused.because(problems)
    was = {name: getattr(feed if name in ("every", "paused") else dataset, name) for name in wanted}
    return {name: value for name, value in wanted.items() if value != was[name]}


def _slas(problems: dict[str, str], form: Form) -> dict[str, Any]:
    overrides, freshness = {}, None
    for name in _names():
        text = form.values.get(f"sla-{name}", "")
        if not text:
            continue
        try:
            read = getattr(slas_of(max(form.tier, 0), {name: text}), name)
        except BadOverride as bad:
            problems[f"sla-{name}"] = str(bad)
            continue
        if name == "freshness":
            freshness = read
        else:
            overrides[name] = text
    return {"overrides": overrides, "freshness_sla": freshness}


def _production(problems: dict[str, str], dataset: Dataset, form: Form) -> dict[str, str]:
    """When it is produced, as far as a calendar says."""
    given = {name: form.values.get(name, "") for name in PRODUCTION}
    try:
        production(given["calendar"], given["holidays"], dataset.zone)
    except BadCalendar as bad:
        problems[bad.field] = str(bad)
    # Holidays may have been given as a list: what the field shows of it is no change.
    was = dataset.overrides
    return {name: was[name] if text == text_of(was.get(name, "")) else text for name, text in given.items() if text}


def _kept(dataset: Dataset) -> dict[str, Any]:
    """What the page does not show stays."""
    shown_here = {*_names(), *PRODUCTION}
    return {name: value for name, value in dataset.overrides.items() if name not in shown_here}


def _read(problems: dict[str, str], name: str, reading: Callable[[], Any]) -> Any:
    try:
        return reading()
    except Refused as refused:
        problems[name] = str(refused)
        return None


def _until(text: str, dataset: Dataset) -> datetime | None:
    """As typed; the minute that the field shows is not a change of the second that is stored."""
    asked = instant(text, timezone.make_aware)
    kept = dataset.grace_until
    same = asked is not None and kept is not None and abs((asked - kept).total_seconds()) < 60
    return kept if same else asked


def _length(text: str) -> timedelta:
    try:
        value = parse_literal(text).value if text else None
    except ExpressionError:
        value = None
    if not isinstance(value, timedelta):
        raise Refused(f"`{text}` is no length of time: write 30s, 5m or 1h.")
    return value


def _feed(dataset: Dataset) -> Feed | None:
    return getattr(dataset, "feed", None)


def expected(dataset: Dataset, *, now: datetime) -> str:
    """What the calendar means next, in words; how to write one where there is none."""
    calendar, holidays = (text_of(dataset.overrides.get(name, "")) for name in PRODUCTION)
    try:
        following = production(calendar, holidays, dataset.zone).next_after(now) if calendar else None
    except BadCalendar as bad:
        return str(bad)
    if following is None:
        return "Minute, hour, day, month, weekday: 0 6 * * mon-fri. Empty: every partition is expected."
    local = following.astimezone(dataset.zone)
    return f"Next at {local:%H:%M} on {words.weekday(local.date())}, {dataset.partition_tz}."
