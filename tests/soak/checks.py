"""What must hold once the instance is at rest. Each check yields a sentence for each thing that is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from urllib.parse import urlsplit

import duckdb
from django.db.models import QuerySet
from hudi import HudiTable

from incidents.domain.incident.placement import REOPEN_WITHIN
from incidents.models import Incident, Message, MessageState
from ingestion.models import Commit, CopyLease, Finding, JobRun, JobState
from lakehub.accounts.audit.verification import verify_chain
from lakehub.catalog.models import DatasetCopy
from lakehub.processes.supervisor.process_tree import descendants
from quality.models import Unit
from tests.soak.stand.onboarding import ORDERS, RULE_TEST
from tests.soak.stand.source import Row
from tests.soak.stand.stage import Stage

SHOWN = 5
Check = Callable[[Stage], Iterator[str]]


def lake_equals_source(stage: Stage) -> Iterator[str]:
    copy = DatasetCopy.objects.get(dataset__name=ORDERS.name)
    in_lake, in_source = lake_rows(copy.uri), stage.source.rows()
    if len(in_lake) != len(set(in_lake)) or len({row[0] for row in in_lake}) != len(in_lake):
        yield f"the lake has {len(in_lake) - len({row[0] for row in in_lake})} orders twice"
    for name, rows in (("lacks", in_source - set(in_lake)), ("has, and the source has not,", set(in_lake) - in_source)):
        if rows:
            yield f"the lake {name} {len(rows)} rows, such as {sorted(rows)[:SHOWN]}"


def lake_rows(uri: str) -> list[Row]:
    """As the table format lists its files, without a JVM and without Lakehub."""
    files = lake_files(uri)
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        query = "SELECT id, day, amount, note, updated_at FROM read_parquet($files, hive_partitioning = false)"
        return [
            (number, _date(day), amount, note, at.astimezone(UTC))
            for number, day, amount, note, at in db.execute(query, {"files": files}).fetchall()
        ]


def lake_files(uri: str) -> list[str]:
    """The newest of each group, as the table format lists them."""
    folder = urlsplit(uri).path
    return [f"{folder}/{each.base_file_relative_path()}" for each in HudiTable(uri).get_file_slices()]


def _date(value: date | str) -> date:
    return value if isinstance(value, date) else date.fromisoformat(value)


def sums_hold(_stage: Stage) -> Iterator[str]:
    yield from unbalanced(Commit.objects.filter(copy__dataset__name=ORDERS.name))


def unbalanced(commits: QuerySet[Commit], may_reject: Collection[str] = ()) -> Iterator[str]:
    """Those whose rows are not accounted for, or rejected. `may_reject`: datasets that may."""
    for commit in commits.select_related("copy__dataset"):
        fates = (commit.applied, commit.superseded, commit.redelivered, commit.errors)
        is_balanced = (
            commit.read is not None and None not in fates and commit.read == sum(count or 0 for count in fates)
        )
        if not is_balanced or (commit.errors and commit.copy.dataset.name not in may_reject):
            yield f"commit {commit.instant}: {commit.read} read, applied, superseded, redelivered and errors are {fates}"


def incidents_are_the_defects(stage: Stage) -> Iterator[str]:
    """One for each day that was ever wrong, open as long as it is; no other."""
    by_day: dict[date, list[Incident]] = {}
    for incident in Incident.objects.order_by("pk").prefetch_related("spans__unit__test__dataset"):
        units = {(span.unit.test.dataset.name, span.unit.test.key) for span in incident.spans.all()}
        days = {span.start.astimezone(UTC).date() for span in incident.spans.all()}
        if units != {(ORDERS.name, RULE_TEST)} or len(days) != 1:
            yield f"incident {incident} is of no defect: {sorted(units)}, {sorted(map(str, days))}"
        else:
            by_day.setdefault(days.pop(), []).append(incident)
    for day in sorted(by_day.keys() | stage.source.ever_wrong):
        incidents = by_day.get(day, [])
        if bool(incidents) != (day in stage.source.ever_wrong):
            yield f"{day} was {'never' if incidents else 'once'} wrong, and has {len(incidents)} incidents"
        # By the times that were noted: a clock that was a day back has made those before it a day older.
        for earlier, later in pairwise(incidents):
            if later.pk in stage.judged_incidents:
                continue
            if earlier.resolved_at is None or later.opened_at - earlier.resolved_at < REOPEN_WITHIN:
                yield f"{day}: {later} was opened, where {earlier} was to be reopened"
        is_wrong = day in stage.source.defects
        if incidents and (incidents[-1].resolved_at is None) != is_wrong:
            yield f"{day} is {'wrong' if is_wrong else 'healed'}, and its incident {incidents[-1]} is {incidents[-1].state}"
        stage.judged_incidents.update(incident.pk for incident in incidents)


def every_message_arrived(stage: Stage) -> Iterator[str]:
    arrived = arrivals(stage)
    for message in Message.objects.select_related("incident"):
        if message.state != MessageState.SENT:
            yield f"message {message.pk}, {message}, is {message.state}: {message.why or message.error}"
        elif message.pk not in arrived:
            yield f"message {message.pk}, {message}, was sent and has not arrived"
    untold = Incident.objects.exclude(messages__occasion="opened", messages__state=MessageState.SENT)
    yield from (f"nobody was told of incident {incident}" for incident in untold)


def arrivals(stage: Stage) -> Counter[int]:
    """How often each message arrived."""
    return Counter(event["data"]["id"] for event in stage.receiver.posted())


def nothing_is_stuck(_stage: Stage) -> Iterator[str]:
    ended = (JobState.SUCCEEDED, JobState.CANCELLED)
    for run in JobRun.objects.exclude(state__in=ended):
        is_at_work = run.state in (JobState.QUEUED, JobState.RUNNING) and run.attempt <= 1
        if not is_at_work:
            yield f"run {run.pk}, {run}, attempt {run.attempt}: {run.error}"
    for finding in Finding.objects.filter(cleared_at=None):
        yield f"finding {finding}: {finding.detail}"
    moment = datetime.now(UTC) + timedelta(minutes=5)
    for unit in Unit.objects.filter(leased_until__gt=moment):
        yield f"unit {unit} is leased until {unit.leased_until}"
    for lease in CopyLease.objects.filter(until__gt=moment):
        yield f"copy {lease} is leased until {lease.until}"


def nothing_is_left_over(stage: Stage) -> Iterator[str]:
    """Processes outside of the instance's tree, and folders that are older than it."""
    instance = stage.instance
    own = {instance.guard, *descendants(instance.guard)}
    for pid, command in instance.processes().items():
        if pid not in own:
            yield f"process {pid} is left over: {command}"
    for folder in (instance.home / "scratch", stage.folder / "tmp"):
        for entry in folder.iterdir() if folder.is_dir() else ():
            with suppress(FileNotFoundError):  # removed meanwhile
                if entry.stat().st_ctime < instance.started_at:
                    yield f"{entry} is left over"


def audit_chain_verifies(_stage: Stage) -> Iterator[str]:
    report = verify_chain()
    if report.problem:
        yield f"audit log: {report.problem}"


CHECKS: tuple[Check, ...] = (
    lake_equals_source,
    sums_hold,
    incidents_are_the_defects,
    every_message_arrived,
    nothing_is_stuck,
    nothing_is_left_over,
    audit_chain_verifies,
)
