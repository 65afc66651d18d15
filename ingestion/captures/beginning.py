"""May a load begin? Not before the tap captures what changes from then on: what changed in between would be nowhere."""

from __future__ import annotations

from datetime import datetime

from ingestion.captures import states
from ingestion.captures.hidden_columns import changed_columns, hidden_columns_of
from ingestion.captures.moves import leads_elsewhere
from ingestion.captures.records import begin_load, capture_of
from ingestion.captures.servers import is_kafka, server_of
from ingestion.lake import findings
from ingestion.models import Capture, Finding, JobKind, JobRun, TapServer
from lakehub.catalog.models import Connection, Feed
from lakehub.catalog.storages import is_captured
from lakehub.kernel.errors import Refused
from lakehub.source_databases.urls import UnusableUrl

_GIVEN_UP = "The dataset is loaded again while its server could not be tapped: changes in between are missing until each copy was loaded again, with `replace`."


def is_captured_feed(feed: Feed | None) -> bool:
    return feed is not None and feed.connection is not None and is_captured(feed.connection.plugin)


def why_load_waits(run: JobRun, *, has_table: bool, now: datetime) -> str | None:
    """None: it may begin, or it is no load of a captured dataset. Raises Refused where its table cannot be captured.

    Where the capture was stopped, another load begins with it: of all copies, so those that are loaded again together wait for one. A copy that has its
    table lacks changes then, and is to be loaded anew. `has_table`: the copy has, a part of a load is none."""
    feed = run.copy.dataset.feed_or_none
    if run.kind != JobKind.BOOTSTRAP or feed is None or not is_captured_feed(feed):
        return None
    capture = capture_of(feed)
    if capture.is_stopped and has_table and not run.params.get("replace"):
        raise Refused(f"{capture.stopped_why} Bootstrap the copy with `replace`: it lacks changes.")
    if _is_given_up(run, capture):
        states.note_stopped(capture.topic, capture.load, _GIVEN_UP)
        states.tell_stops({feed.dataset_id: _GIVEN_UP}, now=now)
        capture.refresh_from_db()
    if capture.is_stopped and run.params.get("from_chunks"):
        raise Refused(
            f"{capture.stopped_why} What changed since is nowhere, so its raw chunks cannot be loaded again: bootstrap the copy with `replace` and without `from_chunks`."
        )
    if capture.is_stopped or _reads_again(run, capture):
        begin_load(capture, run.key)
    if capture.is_stopped:
        raise Refused(capture.stopped_why)
    changed = changed_columns(capture, hidden_columns_of(feed)) if capture.is_captured else ""
    if changed:
        return f"The load begins when the tap knows of the columns that are left out, hashed or masked now: {changed}"
    is_captured = capture.is_captured and not leads_elsewhere(capture)
    return None if is_captured else _why_not_yet(capture, feed.connection)


def _reads_again(run: JobRun, capture: Capture) -> bool:
    """A topic has no rows but its messages: it is read once more, unless that was begun since the run was asked for."""
    connection = capture.feed.connection
    is_topic = connection is not None and is_kafka(connection.url)
    return is_topic and capture.is_captured and _is_asked_anew(run, capture)


def _is_given_up(run: JobRun, capture: Capture) -> bool:
    """The tap cannot go on at the server, or not yet, and whoever asks for a load does not wait for that any longer."""
    if not (capture.is_captured and _is_asked_anew(run, capture)):
        return False
    lacks = Finding.objects.filter(copy=run.copy, kind=findings.CAPTURE_STOPPED, cleared_at=None)
    return leads_elsewhere(capture) or (run.copy_id not in capture.incomplete_copies and lacks.exists())


def _is_asked_anew(run: JobRun, capture: Capture) -> bool:
    return bool(run.params.get("replace")) and run.pk > capture.load_upto_run


def _why_not_yet(capture: Capture, connection: Connection | None) -> str:
    assert connection is not None
    try:
        address = server_of(connection.url)
    except UnusableUrl as problem:
        raise Refused(f"The connection {connection} cannot be tapped: {problem}") from problem
    server = TapServer.objects.filter(address=address).first()
    why = f"The load begins when the tap of {address} captures the changes of {capture.topic}"
    if server is not None and server.error:
        return f"{why}. It does not work now: {server.error}"
    return f"{why}; the process `tap` does that (`manage.py tap`)."
