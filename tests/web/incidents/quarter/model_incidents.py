"""The book, second part: incidents and messages, as the rules say it, over plain lists."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from lakehub.kernel.interval import BEGINNING, FOREVER
from tests.web.incidents.quarter.model_units import ModelUnit
from tests.web.incidents.quarter.results import Letter, Name
from tests.web.incidents.quarter.scenario import DAY, EVER, MINUTE, START, DatasetPlan, Key, Range, Scenario, meet

PATIENCE = 30 * MINUTE
OPENINGS = ("opened", "reopened")
FORCED = ("false_positive", "accepted")


@dataclass(eq=False)
class ModelSpan:
    unit: ModelUnit
    data: Range
    began_at: datetime
    ended_at: datetime | None = None

    def alive(self, at: datetime) -> bool:
        return self.began_at <= at and (self.ended_at is None or at < self.ended_at)


@dataclass(eq=False)
class ModelIncident:
    name: Name
    opened_at: datetime
    state: str = "open"
    spans: list[ModelSpan] = field(default_factory=list)
    resolved_at: datetime | None = None
    how: str = ""
    snoozed_until: datetime | None = None
    eta: datetime | None = None

    def active(self) -> list[ModelSpan]:
        return [span for span in self.spans if span.ended_at is None]


@dataclass(eq=False)
class ModelReport(ModelIncident):
    """What a user reports: `center` None means everywhere."""

    center: str | None = None
    data: Range = EVER
    since: datetime = START
    fixed_at: datetime | None = None
    matched: ModelIncident | None = None
    acknowledged: bool = False


@dataclass(eq=False)
class ModelMessage:
    case: ModelIncident
    occasion: str
    at: datetime
    fate: str = "pending"
    sent_at: datetime | None = None
    suppressed_since: datetime | None = None
    released_at: datetime | None = None

    def record(self) -> Letter:
        return Letter(
            self.at, self.case.name, self.occasion, self.fate, self.sent_at, self.suppressed_since, self.released_at
        )


@dataclass
class ModelBatch:
    """What one taking-in did to an incident."""

    occasion: str = ""
    ended: bool = False
    how: str = "auto"


class ModelIncidents:
    """All incidents and messages."""

    def __init__(self, story: Scenario, units: dict[Key, ModelUnit]) -> None:
        self.story, self.units = story, units
        self.all: list[ModelIncident] = []
        self.letters: list[ModelMessage] = []
        self.unsent: list[ModelMessage] = []
        self.batch: defaultdict[ModelIncident, ModelBatch] = defaultdict(ModelBatch)

    # Where to find what

    def of(self, dataset: str, category: str, kind: str = "detected") -> list[ModelIncident]:
        mine = [case for case in self.all if case.name[:3] == (dataset, category, kind)]
        return sorted(mine, key=lambda case: case.opened_at)  # of those of one minute the first stays first

    def opened(self, dataset: str, category: str) -> list[ModelIncident]:
        return [case for case in self.of(dataset, category) if case.resolved_at is None]

    def create(self, dataset: str, category: str, now: datetime) -> ModelIncident:
        made = ModelIncident(Name(dataset, category, "detected", 0), now)
        self.all.append(made)
        return made

    def reports(self) -> list[ModelReport]:
        return [case for case in self.all if isinstance(case, ModelReport)]

    def number_anew(self) -> None:
        """By age: what was split off is as old as what it comes from."""
        keys = {case.name[:3] for case in self.all}
        for key in keys:
            for number, case in enumerate(self.of(*key), start=1):
                case.name = case.name._replace(number=number)

    # A verdict changed

    def begins(self, unit: ModelUnit, now: datetime) -> None:
        """The unit's verdict is FAIL now: its span joins, reopens, or opens an incident."""
        plan, category = unit.plan, unit.test.category
        rivals = self.of(plan.name, category)
        opened = [case for case in rivals if case.resolved_at is None]
        if any(span.unit is unit for case in opened for span in case.active()):
            return
        data = (unit.boundary, FOREVER) if unit.test.key == "freshness" and unit.boundary else unit.key[3:5]
        span = ModelSpan(unit, data, unit.streak()[0].at)
        near = [case for case in opened if any(touch(grown(plan, other.data), data) for other in case.active())]
        back = [case for case in rivals if self.may_reopen(case, unit, now)]
        if near:
            case = near[0]
        elif back:
            case = max(reversed(back), key=lambda case: case.resolved_at or now)  # of those of one minute the youngest
            self.batch[case].occasion = self.batch[case].occasion or "reopened"
            case.state, case.resolved_at, case.how = "open", None, ""
        else:
            case = self.create(plan.name, category, now)
            self.batch[case].occasion = "opened"
        case.spans.append(span)
        self.batch[case].how = "auto"

    @staticmethod
    def may_reopen(case: ModelIncident, unit: ModelUnit, now: datetime) -> bool:
        held = any(span.unit is unit for span in case.spans)
        return held and case.how not in FORCED and case.resolved_at is not None and now - case.resolved_at < DAY

    def ends(self, unit: ModelUnit, now: datetime, how: str) -> None:
        for case in self.all:
            for span in case.active():
                if span.unit is unit:
                    span.ended_at = max(now, span.began_at)
                    self.batch[case].how = how
                    if not case.active():
                        case.resolved_at = now

    def settle(self, now: datetime) -> None:
        """Once all that changed at this minute is taken in."""
        for case, batch in self.batch.items():
            if case.active():
                if batch.occasion:
                    self.letter(case, batch.occasion, now)
            elif case.state != "resolved":
                case.state, case.how, case.resolved_at, case.snoozed_until = "resolved", batch.how, now, None
                if not batch.occasion:  # else it came and went within the minute
                    self.letter(case, "resolved", now)
                self.follow(case, now)
            self.match_waiting(case, now)
        self.batch.clear()
        for case in self.all:
            for span in case.active():
                if span.unit.test.key == "freshness" and span.unit.boundary is not None:
                    span.data = (span.unit.boundary, FOREVER)

    # Users' reports

    def report(self, case: ModelReport, now: datetime) -> None:
        self.all.append(case)
        if not self.match(case, now):
            case.state = "waiting"
            self.letter(case, "reported", now)

    def match(self, reported: ModelReport, now: datetime) -> bool:
        """The earliest open incident of its dataset and category that overlaps in range and life, else the latest."""
        rivals = [
            case
            for case in self.of(*reported.name[:2])
            if case.how != "false_positive" and self.overlaps(case, reported, now)
        ]
        opened = [case for case in rivals if case.resolved_at is None]
        over = sorted(
            (case for case in rivals if case.resolved_at is not None), key=lambda case: (case.resolved_at, case.name)
        )
        explaining = opened[:1] or over[-1:]
        for case in explaining:
            reported.state, reported.matched = "matched", case
            if case.resolved_at is not None:
                self.ends_with(reported, case, now)
                reported.fixed_at = case.resolved_at
        return bool(explaining)

    @staticmethod
    def overlaps(case: ModelIncident, reported: ModelReport, now: datetime) -> bool:
        return any(
            reported.center in (None, span.unit.key.center)
            and meet(span.data, reported.data)
            and span.began_at <= now
            and (span.ended_at is None or span.ended_at > reported.since)
            for span in case.spans
        )

    def match_waiting(self, case: ModelIncident, now: datetime) -> None:
        for reported in self.reports():
            if reported.state == "waiting" and reported.name[:2] == case.name[:2]:
                self.match(reported, now)

    def rematch(self, other: ModelIncident, into: ModelIncident) -> None:
        for reported in self.reports():
            if reported.matched is other:
                reported.matched = into

    def reopened_by_hand(self, case: ModelIncident, now: datetime) -> None:
        """Who heard that it is over hears that it is not; reports that ended with it go on."""
        self.takes_back(case, "resolved", "reopened", now)
        for reported in self.reports():
            if reported.matched is case and reported.state == "resolved":
                reported.state, reported.resolved_at, reported.how, reported.fixed_at = "matched", None, "", None
        self.match_waiting(case, now)

    def takes_back(self, case: ModelIncident, taken_back: str, occasion: str, now: datetime) -> None:
        """Who was told the one is told the other; who was not hears neither."""
        mine = [letter for letter in self.letters if letter.case is case and letter.occasion == taken_back]
        if mine and mine[-1].fate == "sent":
            self.letter(case, occasion, now)
        elif mine and mine[-1].fate == "pending":
            mine[-1].fate = "dropped"
            self.unsent.remove(mine[-1])

    def follow(self, case: ModelIncident, now: datetime) -> None:
        """A report ends with the incident that explains it, unless that was a false alarm."""
        for reported in self.reports():
            if reported.state == "matched" and reported.matched is case:
                if case.how != "false_positive":
                    self.ends_with(reported, case, now)
                elif not self.match(reported, now):
                    reported.state = "waiting"
                    reported.matched = None
                    self.letter(reported, "reported", now)

    def ends_with(self, reported: ModelReport, case: ModelIncident, now: datetime) -> None:
        """Producers who were asked about it are told that they need not answer."""
        reported.state, reported.resolved_at, reported.how, reported.fixed_at = "resolved", now, case.how, now
        if any(letter.case is reported for letter in self.letters):
            self.letter(reported, "resolved", now)

    # Messages

    def letter(self, case: ModelIncident, occasion: str, now: datetime) -> None:
        self.letters.append(ModelMessage(case, occasion, now))
        self.unsent.append(self.letters[-1])

    def send(self, now: datetime) -> int:
        """What can go out at this minute does. How many were looked at."""
        looked_at = len(self.unsent)
        for letter in self.unsent:
            if letter.occasion in OPENINGS:
                self.send_opening(letter, now)
            else:
                self.send_follow_up(letter, now)
        self.unsent = [unsent for unsent in self.unsent if unsent.fate in ("pending", "held")]
        return looked_at

    def send_follow_up(self, letter: ModelMessage, now: datetime) -> None:
        """Who was told that it began is told how it goes on."""
        before = self.letters[: self.letters.index(letter)]
        openings = [earlier for earlier in before if earlier.case is letter.case and earlier.occasion in OPENINGS]
        fate = openings[-1].fate if openings else "sent"
        if fate == "sent":
            letter.fate, letter.sent_at = "sent", now
        elif fate == "dropped":
            letter.fate = "dropped"

    def send_opening(self, letter: ModelMessage, now: datetime) -> None:
        case, plan = letter.case, self.story.fleet[letter.case.name.dataset]
        active = [span for span in case.active() if span.unit.verdict(now) == "fail"]
        if not active:
            letter.fate = "dropped"
        elif self.is_suppressed(case, active, now):
            letter.fate, letter.suppressed_since, letter.released_at = "held", letter.suppressed_since or now, None
        elif now < plan.begins + plan.grace or (case.snoozed_until is not None and now < case.snoozed_until):
            letter.fate = "held"
        elif letter.suppressed_since is None:
            letter.fate, letter.sent_at = "sent", now
        elif letter.released_at is None:
            letter.released_at = now
            for span in case.active():
                span.unit.ask(now, by_hand=False)
        elif (
            all(span.unit.seen[-1].at >= letter.released_at for span in active) or now >= letter.released_at + PATIENCE
        ):
            letter.fate, letter.sent_at = "sent", now

    def is_suppressed(self, case: ModelIncident, active: list[ModelSpan], now: datetime) -> bool:
        """The freshness of an involved copy fails, and all that the incident affects lies in what is stale."""
        if case.name.category == "freshness":
            return False
        return any(
            late.failing()
            and late.verdict(now) in ("fail", "warn")
            and self.involves(case, active, late)
            and all((late.boundary or BEGINNING) <= span.data[0] for span in active)
            for late in self.units.values()
            if late.test.key == "freshness"
        )

    def involves(self, case: ModelIncident, active: list[ModelSpan], late: ModelUnit) -> bool:
        dataset, category = case.name.dataset, case.name.category
        centers = {span.unit.key.center for span in active}
        mine = late.plan.name == dataset and (late.key.center in centers or category == "consistency")
        upstream = category == "completeness" and late.plan.name == self.story.fleet[dataset].upstream
        return mine or (upstream and late.key.center in centers)


def touch(first: Range, other: Range) -> bool:
    return first[0] <= other[1] and other[0] <= first[1]


def grown(plan: DatasetPlan, data: Range) -> Range:
    """By one partition on each side."""
    if plan.grain == "none" or data == EVER:
        return data
    start = plan.before(data[0]) if data[0] > BEGINNING else data[0]
    end = plan.after(data[1]) if data[1] < FOREVER else data[1]
    return (start, end)
