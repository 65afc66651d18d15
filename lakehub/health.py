"""Is the process alive, can it work, and how much is waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from datetime import datetime
from threading import Lock

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.models import Count
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from incidents.gate import question_log as gate_log
from incidents.models import Incident, Message
from ingestion.captures import lag
from ingestion.models import IndexAllowance, IndexShare, JobRun, JobState
from ingestion.runs.index_use.states import allowed_of, with_verifications
from ingestion.runs.index_use.waits import jobs_waiting_for_answer
from ingestion.runs.modelled_tables.progress import progress_of
from ingestion.runs.modelled_tables.run_costs import COUNTED_RUNS, run_costs_of
from ingestion.runs.replicas.states import live_replicas, states_of
from lakehub import wiring
from lakehub.accounts.tokens.authentication import TokenAuthentication
from lakehub.catalog.models import DatasetCopy, FeedKind
from quality.generation import coverage
from quality.models import Unit

VERDICT_S = 1.0
INDEXES_MEASURED = 500
PIPELINES_MEASURED = 200
REPLICAS_MEASURED = 200


@login_not_required
def alive(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "alive"})


class RecentVerdict:
    """What asking came to, kept for VERDICT_S: whoever asks often, or many at once, cost the database one question."""

    def __init__(self, ask: Callable[[], str], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._ask, self._monotonic = ask, monotonic
        self._lock = Lock()
        self._kept: tuple[str, float] | None = None
        """With the time at which it is too old."""

    def get(self) -> str:
        """Waits for an answer that another thread has asked for. Raises what asking raises, and keeps nothing of it."""
        with self._lock:
            if self._kept is None or self._monotonic() >= self._kept[1]:
                # From the end of asking: a server that is silent is asked for seconds.
                self._kept = self._ask(), self._monotonic() + VERDICT_S
            return self._kept[0]


def ask_database() -> str:
    """The name of its error; empty where it answers. A server that has gone silent is an error after a few seconds."""
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        # Only the way in has a time-out: on a connection that is kept, a server that hangs would be waited for.
        connection.close()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return type(error).__name__
    return ""


# No login and no address limit stand before the address: what it costs is bounded here.
database_verdict = RecentVerdict(ask_database)


@login_not_required
def ready(request: HttpRequest) -> JsonResponse:
    """200 where the database answers; 503 with the reason where it does not, also where it has gone silent."""
    if problem := database_verdict.get():
        return JsonResponse({"status": "not ready", "database": problem}, status=503)
    return JsonResponse({"status": "ready"})


def _metrics_denial(request: HttpRequest) -> HttpResponse | None:
    """What a request is answered that may not read the metrics: people who are signed in may, and tokens with the scope."""
    if request.user.is_authenticated:
        return None
    try:
        credentials = TokenAuthentication().authenticate(Request(request))
    except AuthenticationFailed as failed:
        return HttpResponse(str(failed), status=401, headers={"WWW-Authenticate": "Bearer"})
    if credentials is None:
        return HttpResponse("A token is needed.", status=401, headers={"WWW-Authenticate": "Bearer"})
    return (
        None
        if "metrics:read" in credentials[1].scopes
        else HttpResponse("This token lacks `metrics:read`.", status=403)
    )


def _measure_captures(registry: CollectorRegistry, *, now: datetime) -> None:
    behind = Gauge(
        "lakehub_tap_lag_seconds",
        "How long what was committed at a tapped server may not have been captured, by the server's number",
        ["server"],
        registry=registry,
    )
    for number, tap_lag in lag.tap_lags(now=now).items():
        behind.labels(str(number)).set(tap_lag.total_seconds())
    failing = Gauge("lakehub_tap_servers_failing", "Servers that cannot be tapped now", registry=registry)
    failing.set(lag.failing_servers())
    stopped = Gauge("lakehub_captures_stopped", "Datasets whose changes are not captured any more", registry=registry)
    stopped.set(lag.stopped_captures())
    took = Gauge(
        "lakehub_change_lag_seconds",
        "How long captured changes took from their source to the lake in this hour and the one before, by tier",
        ["tier", "quantile"],
        registry=registry,
    )
    for tier, counts in lag.change_lags(now=now).items():
        for share in (0.5, 0.95):
            if (span := counts.quantile(share)) is not None:
                took.labels(str(tier), str(share)).set(span.total_seconds())
    audited = Gauge(
        "lakehub_audited_messages",
        "Captured messages of the last 24 hours that were counted at the source, in the log and in commits",
        ["at"],
        registry=registry,
    )
    counted = lag.audited_messages(now=now)
    for place, messages in counted.at.items():
        audited.labels(place).set(messages)
    apart = Gauge(
        "lakehub_audited_differences",
        "By how many messages the counts of the hours of the last 24 differ, added up without signs",
        ["between"],
        registry=registry,
    )
    for pair, messages in counted.apart.items():
        apart.labels(pair).set(messages)
    problems = Gauge(
        "lakehub_captured_copies_with", "Captured copies with this finding", ["finding"], registry=registry
    )
    for kind, copies in lag.open_findings().items():
        problems.labels(kind).set(copies)


def _measure_indexes(registry: CollectorRegistry) -> None:
    """Of the copies with the greatest fractions, by their number."""

    def of_copy(name: str, about: str) -> Gauge:
        return Gauge(f"lakehub_index_{name}", about, ["copy"], registry=registry)

    allowed = of_copy(
        "allowed_per_second",
        "Requests a second that jobs of a copy may send to its index cluster, by the copy's number",
    )
    entries = of_copy("entries", "Entries of a copy in its index cluster")
    verified = of_copy("verified_timestamp_seconds", "When the index of a copy was last compared with its table")
    wrong = of_copy("wrong", "1 where entries of a copy are known to be wrong")
    about = "Requests that jobs of a copy have sent there"
    requests = Counter("lakehub_index_requests", about, ["copy"], registry=registry)
    shares = IndexShare.objects.select_related("cluster").defer("cluster__url").order_by("-fraction", "pk")
    for share in with_verifications(shares)[:INDEXES_MEASURED]:
        number = str(share.pk)
        allowed.labels(number).set(allowed_of(share) or 0)
        entries.labels(number).set(share.rows)
        requests.labels(number).inc(share.requests)
        wrong.labels(number).set(share.is_wrong)
        if share.verified_at is not None:
            verified.labels(number).set(share.verified_at.timestamp())
    about = "Jobs that wait for room in an index cluster, or until it answers"
    waiting = Gauge("lakehub_index_jobs_waiting", about, registry=registry)
    without_room = IndexAllowance.objects.filter(fraction=0, leased_until__gte=Now()).exclude(leased_by="").count()
    waiting.set(without_room + jobs_waiting_for_answer())


def _measure_pipelines(registry: CollectorRegistry, *, now: datetime) -> None:
    """Of so many copies that pipelines make, by their number, those of the highest tiers first."""
    live = DatasetCopy.objects.filter(dataset__ingested=True, dataset__offboarded_at=None)
    made = live.filter(dataset__feed__kind=FeedKind.PIPELINE, replica=None).select_related("dataset", "data_center")

    def of_copy(name: str, about: str, *labels: str) -> Gauge:
        return Gauge(f"lakehub_pipeline_{name}", about, ["copy", *labels], registry=registry)

    lag_seconds = of_copy("lag_seconds", "How long the first commit of an input waits that a pipeline has not read yet")
    pending = of_copy("commits_pending", "Commits of its inputs that a pipeline has not read yet")
    processed = of_copy("commits_processed", "Commits of its inputs that a pipeline has read, of the last 24 hours")
    rows = of_copy("rows", "Rows that a pipeline has changed in the last 24 hours", "kind")
    failing = of_copy("failing", "1 where the newest run of a pipeline has failed")
    copies = [*made.order_by("dataset__tier", "pk")[:PIPELINES_MEASURED]]
    for progress in progress_of(copies, now=now):
        number = str(progress.copy.pk)
        if (behind := progress.lag(now=now)) is not None:
            lag_seconds.labels(number).set(behind.total_seconds())
        pending.labels(number).set(progress.pending)
        processed.labels(number).set(sum(each.processed for each in progress.inputs if each.input.is_followed))
        for kind, count in progress.rows.items():
            rows.labels(number, kind).set(count)
        failing.labels(number).set(progress.newest_run is not None and progress.newest_run.state == JobState.FAILED)
    _measure_pipeline_runs(copies, of_copy)


def _measure_pipeline_runs(copies: Collection[DatasetCopy], of_copy: Callable[..., Gauge]) -> None:
    """Of those of which a run that makes rows has ended."""
    seconds = of_copy("last_run_seconds", "How long the newest run of a pipeline took that has ended")
    core_seconds = of_copy("last_run_core_seconds", "Core-seconds that this run took")
    rows = of_copy("last_run_rows", "Rows that this run has changed", "kind")
    compared = of_copy("last_run_compared_bytes", "Size of the files of inputs that this run has compared")
    failed = of_copy("failed_runs", f"Runs of a pipeline that failed, among the newest {COUNTED_RUNS} of its copy")
    for copy, costs in run_costs_of(copies).items():
        number = str(copy)
        failed.labels(number).set(costs.failed_runs)
        for kind, count in costs.rows.items():
            rows.labels(number, kind).set(count)
        if costs.seconds is not None:
            seconds.labels(number).set(costs.seconds)
        if costs.core_s is not None:
            core_seconds.labels(number).set(costs.core_s)
        if costs.compared_bytes is not None:
            compared.labels(number).set(costs.compared_bytes)


def _measure_replicas(registry: CollectorRegistry, *, now: datetime) -> None:
    """Of so many replicas, by their number, those of the highest tiers first."""

    def of_copy(name: str, about: str) -> Gauge:
        return Gauge(f"lakehub_replica_{name}", about, ["copy"], registry=registry)

    lag_seconds = of_copy("lag_seconds", "How long the first commit of its source waits that a replica lacks")
    pending = of_copy("commits_pending", "Commits of its source that a replica lacks")
    failing = of_copy("failing", "1 where the newest run of a replica has failed, or is tried again")
    for state in states_of(live_replicas().order_by("copy__dataset__tier", "pk")[:REPLICAS_MEASURED]):
        number = str(state.copy.pk)
        lag_seconds.labels(number).set(state.lag(now=now).total_seconds())
        failing.labels(number).set(state.failed_run is not None)
        if state.pending is not None:
            pending.labels(number).set(state.pending)


@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus. Numbers only: no names of datasets or people. Each is a few indexed queries."""
    if settings.LAKEHUB_METRICS == "token" and (refused := _metrics_denial(request)):
        return refused
    now = wiring.clock.now()
    registry = CollectorRegistry()
    gauge = Gauge("lakehub_units_due", "Units that are due and not yet run", registry=registry)
    gauge.set(Unit.objects.filter(due_at__lte=now).count())
    gauge = Gauge("lakehub_messages_waiting", "Messages not sent yet", registry=registry)
    gauge.set(Message.objects.filter(state__in=("pending", "held")).count())
    open_now = Gauge("lakehub_incidents_open", "Open incidents", ["category"], registry=registry)
    for row in Incident.objects.filter(resolved_at=None).values("category").annotate(n=Count("pk")):
        open_now.labels(row["category"]).set(row["n"])
    runs = Gauge(
        "lakehub_job_runs", "Job runs queued, waiting for an input, paused, or running", ["state"], registry=registry
    )
    for state in ("queued", "waiting", "paused", "running"):
        runs.labels(state).set(JobRun.objects.filter(state=state).count())
    _measure_captures(registry, now=now)
    _measure_indexes(registry)
    _measure_pipelines(registry, now=now)
    _measure_replicas(registry, now=now)
    share = Gauge(
        "lakehub_coverage", "Share of the datasets of a tier that are tested whole", ["tier"], registry=registry
    )
    for tier in coverage.REQUIRED_TIERS:
        tier_coverage = coverage.recent_coverage([tier], now=now)
        share.labels(str(tier)).set(1.0 if tier_coverage.share is None else tier_coverage.share)
    for name, about in (
        (gate_log.QUESTIONS_DROPPED, "Questions to the gate that could not be kept for the query-level score"),
        (gate_log.QUESTIONS_REFUSED, "Questions to the gate that came too often and were not answered"),
    ):
        Counter(f"lakehub_gate_{name}", about, registry=registry).inc(gate_log.counter_value(name))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
