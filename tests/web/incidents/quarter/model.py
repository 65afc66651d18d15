"""The book: what a quarter must come to by the rules, kept minute by minute by somebody slow who forgets nothing.

It knows nothing of the machine but one thing that the rules leave open: of what happens at one minute, what was first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from tests.web.incidents.quarter import model_gate, model_scores
from tests.web.incidents.quarter.model_incidents import FORCED, ModelIncident, ModelIncidents, ModelReport
from tests.web.incidents.quarter.model_units import ModelUnit
from tests.web.incidents.quarter.results import Case, Execution, Name, QuarterResults, SpanOf
from tests.web.incidents.quarter.scenario import EVER, Act, DatasetPlan, Key, Scenario, TestPlan


class ReferenceModel:
    def __init__(self, story: Scenario, order: Mapping[datetime, Sequence[Key]], rank: Mapping[Key, int]) -> None:
        self.story, self.order, self.rank = story, order, rank
        self.units: dict[Key, ModelUnit] = {}
        self.cases = ModelIncidents(story, self.units)
        self.first_runs: defaultdict[datetime, list[ModelUnit]] = defaultdict(list)
        self.restless: list[ModelUnit] = []
        self.executions: list[Execution] = []
        self.replies: list[model_gate.ExpectedAnswer] = []
        self.asked: list[tuple[Act, datetime]] = []

    def keep(self) -> QuarterResults:
        for plan in self.story.fleet.values():
            self.plan(plan)
        for now in self.story.minutes():
            self.minute(now)
        return self.record()

    def plan(self, plan: DatasetPlan) -> None:
        """Each partition is run first when it must be whole, and what is older when the dataset begins; the whole at once."""
        for test in plan.tests:
            for center in plan.centers_of(test):
                ranges = [EVER] if test.whole else plan.partitions(plan.monitored_from, self.story.end)
                for start, end in ranges:
                    unit = ModelUnit(Key(plan.name, test.key, center, start, end), plan, test)
                    unit.due = plan.begins if test.whole else max(plan.begins, end + plan.promise.due_after)
                    self.first_runs[unit.due].append(unit)

    def minute(self, now: datetime) -> None:
        acts, first = self.story.acts.get(now, ()), self.first_runs.pop(now, ())
        self.units |= {unit.key: unit for unit in first}
        for act in acts:
            if act.what != "ask":
                getattr(self, act.what)(act, now)
        if acts or first:
            self.look_around()
        if self.run_what_is_due(now) + self.look_at_time(now) or acts:
            self.cases.settle(now)
        if self.cases.send(now):
            self.look_around()
        for act in acts:
            if act.what == "ask":
                self.ask(act, now)

    def look_around(self) -> None:
        """Who may have something to do at one of the next minutes: it would take long to ask all of them each minute."""
        self.restless = [unit for unit in self.units.values() if unit.due is not None or unit.failing()]

    def run_what_is_due(self, now: datetime) -> int:
        """All that is due at this minute, in the order in which the machine came to it."""
        due = [unit for unit in self.restless if unit.due is not None and unit.due <= now]
        if not due or self.story.workers_are_down(now):
            return 0
        order = {key: place for place, key in enumerate(self.order.get(now, ()))}
        for unit in sorted(due, key=lambda unit: order.get(unit.key, len(order))):
            self.run(unit, now)
        self.look_around()
        return len(due)

    def run(self, unit: ModelUnit, now: datetime) -> None:
        outcome, by_hand = self.story.outcome(unit.key, now), unit.by_hand
        self.executions.append(Execution(now, unit.key, outcome, by_hand))
        if unit.test.key == "freshness" and outcome in ("PASS", "FAIL"):
            unit.boundary = self.story.boundary(unit.key.dataset, unit.key.center, now)
        unit.observe(outcome, now)
        unit.schedule(now, self.story.jitter(now))
        self.look(unit, now, "manual_rerun" if by_hand else "auto")

    def look_at_time(self, now: datetime) -> int:
        """What time alone makes FAIL: nothing has run it again for two sustain periods."""
        doubtful = [unit for unit in self.restless if unit.failing() and not unit.fails]
        for unit in sorted(doubtful, key=lambda unit: self.rank.get(unit.key, 0)):
            self.look(unit, now)
        return len(doubtful)

    def look(self, unit: ModelUnit, now: datetime, how: str = "auto") -> None:
        fails = unit.verdict(now) == "fail"
        if fails and not unit.fails:
            self.cases.begins(unit, now)
        if unit.fails and not fails:
            self.cases.ends(unit, now, how)
        unit.fails = fails

    # What is done to data and tests

    def commit(self, act: Act, now: datetime) -> None:
        """Into some partitions of a copy: its own tests read them, and those that compare another copy with it."""
        plan, center, touched = self.story.fleet[act.dataset], act.details["center"], act.details["touched"]
        for unit in list(self.units.values()):
            reads = unit.key.center == center or (unit.test.compares and center == "dc1")
            if (
                unit.plan is plan
                and reads
                and any(start < unit.key.end and unit.key.start < end for start, end in touched)
            ):
                unit.touch(now)

    def finding_raised(self, act: Act, now: datetime) -> None:
        self.find(act, now, "FAIL")

    def finding_cleared(self, act: Act, now: datetime) -> None:
        self.find(act, now, "PASS")

    def find(self, act: Act, now: datetime, outcome: str) -> None:
        test = TestPlan(f"finding:{act.details['kind']}", "ingestion")
        key = Key(act.dataset, test.key, act.details["center"], *act.details["data"])
        unit = self.units.setdefault(key, ModelUnit(key, self.story.fleet[act.dataset], test))
        self.executions.append(Execution(now, key, outcome, False))
        unit.observe(outcome, now)
        self.look(unit, now)

    def new_version(self, act: Act, now: datetime) -> None:
        """What was waived counts again, and all that was ever run is run again."""
        mine = [unit for unit in self.units.values() if unit.key[:2] == (act.dataset, act.details["test"])]
        for unit in sorted(mine, key=lambda unit: self.rank.get(unit.key, 0)):
            if unit.waiver:
                unit.lift()
                self.look(unit, now)
            if unit.seen and (unit.due is None or unit.due > now):
                unit.due, unit.by_hand = now, False

    def run_now(self, act: Act, now: datetime) -> None:
        """A pipeline has finished: its test is due at once."""
        unit = self.units.get(Key(act.dataset, act.details["test"], act.details["center"], *EVER))
        if unit is not None:
            unit.ask(now, by_hand=False)

    # What people do to incidents

    def opened(self, act: Act) -> list[ModelIncident]:
        return self.cases.opened(act.dataset, act.details["category"])

    def resolve(self, act: Act, now: datetime) -> None:
        for case in self.opened(act)[:1]:
            for span in case.active():
                span.ended_at = max(now, span.began_at)
                span.unit.waive(act.details["how"], now)
                span.unit.fails = False
            case.state, case.how, case.resolved_at, case.snoozed_until = "resolved", act.details["how"], now, None
            self.cases.letter(case, "resolved", now)
            self.cases.follow(case, now)

    def reopen(self, act: Act, now: datetime) -> None:
        """What was waived with the newest forced resolution and still fails goes on as if it had never been resolved."""
        forced = [case for case in self.cases.of(act.dataset, act.details["category"]) if case.how in FORCED]
        for case in forced[-1:]:
            waived = {span.unit for span in case.spans if span.unit.waiver}
            failing = [unit for unit in waived if unit.failing() and unit.verdict_unwaived(now) == "fail"]
            if not failing:
                continue
            for unit in waived:
                unit.lift()
            case.state, case.how, case.resolved_at = "open", "", None
            for unit in failing:
                max((span for span in case.spans if span.unit is unit), key=lambda span: span.began_at).ended_at = None
                unit.fails = True
                unit.ask(now, by_hand=False)
            self.cases.reopened_by_hand(case, now)

    def merge(self, act: Act, now: datetime) -> None:
        for into, other in [self.opened(act)[:2]] if len(self.opened(act)) > 1 else []:
            into.spans += other.spans
            other.spans = []
            other.state, other.how, other.resolved_at = "resolved", "merged", now
            self.cases.letter(other, "resolved", now)
            self.cases.rematch(other, into)

    def split(self, act: Act, now: datetime) -> None:
        for case in self.opened(act)[:1]:
            units = sorted((span.unit for span in case.active()), key=lambda unit: unit.key)
            if len(units) < 2:
                continue
            made = self.cases.create(*case.name[:2], case.opened_at)
            go = units[len(units) // 2 :]
            made.snoozed_until = case.snoozed_until
            made.state, made.spans = case.state, [span for span in case.spans if span.unit in go]
            case.spans = [span for span in case.spans if span.unit not in go]
            self.cases.letter(made, "opened", now)
            if made.state == "acknowledged":
                self.cases.letter(made, "acknowledged", now)

    def acknowledge(self, act: Act, now: datetime) -> None:
        for case in self.opened(act)[:1]:
            if case.state == "open":
                case.state = "acknowledged"
                self.cases.letter(case, "acknowledged", now)

    def release(self, act: Act, now: datetime) -> None:
        for case in self.opened(act)[:1]:
            if case.state == "acknowledged":
                case.state = "open"
                self.cases.takes_back(case, "acknowledged", "released", now)

    def snooze(self, act: Act, now: datetime) -> None:
        for case in self.opened(act)[:1]:
            case.snoozed_until = act.details["until"]

    def eta(self, act: Act, now: datetime) -> None:
        for case in self.opened(act)[:1]:
            case.eta = act.details["until"]

    def comment(self, act: Act, now: datetime) -> None:
        """Words change nothing."""

    def rerun(self, act: Act, now: datetime) -> None:
        for case in self.opened(act)[:1]:
            for span in case.active():
                span.unit.ask(now, by_hand=True)

    # What users report

    def reported(self, act: Act, *states: str) -> list[ModelReport]:
        """The newest report, if it is in one of these states."""
        mine = [
            reported for reported in self.cases.reports() if reported.name[:2] == (act.dataset, act.details["category"])
        ]
        return [
            reported for reported in sorted(mine, key=lambda report: report.opened_at)[-1:] if reported.state in states
        ]

    def report(self, act: Act, now: datetime) -> None:
        fields, name = act.details, Name(act.dataset, act.details["category"], "reported", 0)
        new_report = ModelReport(name, now, center=fields["center"], data=fields["data"], since=fields["since"])
        self.cases.report(new_report, now)

    def acknowledge_report(self, act: Act, now: datetime) -> None:
        for case in self.reported(act, "waiting"):
            case.state, case.acknowledged = "acknowledged", True
            self.cases.letter(case, "acknowledged", now)

    def reject_report(self, act: Act, now: datetime) -> None:
        for case in self.reported(act, "waiting"):
            case.state = "rejected"

    def dispute_report(self, act: Act, now: datetime) -> None:
        for case in self.reported(act, "rejected"):
            case.state = "waiting"
            self.cases.letter(case, "reported", now)

    def fixed_report(self, act: Act, now: datetime) -> None:
        for case in self.reported(act, "acknowledged", "rejected"):
            counted = case.state == "acknowledged"
            case.how = "declared_fixed" if counted else "rejected"
            case.state, case.resolved_at, case.fixed_at = "resolved", now, now
            if counted:
                self.cases.letter(case, "resolved", now)

    def say_nothing(self, act: Act, now: datetime) -> None:
        """The producer does not answer."""

    # The gate and the scores

    def ask(self, act: Act, now: datetime) -> None:
        self.replies.append(model_gate.answer(self.story.fleet[act.dataset], act, self.units, self.cases.all, now))
        self.asked.append((act, now))

    def record(self) -> QuarterResults:
        self.cases.number_anew()
        replies = [cause.reply() for cause in self.replies]
        cases = sorted(map(told_of, self.cases.all))
        letters = sorted(letter.record() for letter in self.cases.letters)
        windows = model_scores.windows(self.story)
        scores = [model_scores.score(self.story, self.cases.all, self.asked, *window) for window in windows]
        return QuarterResults(sorted(self.executions), cases, letters, replies, scores)


def told_of(case: ModelIncident) -> Case:
    spans = (SpanOf(span.unit.key, *span.data, span.began_at, span.ended_at) for span in case.spans)
    matched = case.matched.name if isinstance(case, ModelReport) and case.matched else None
    ended = tuple(sorted(spans, key=lambda span: (span.key, span.began_at)))
    return Case(case.opened_at, case.name, case.state, case.resolved_at, case.how, ended, matched)
