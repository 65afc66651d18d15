"""Looks at the topics of a cluster before they are read, by each connection apart and all at once: one that does not get through takes no other's time.

A client needs its whole time to notice a wrong password, and the lease of the tap is short.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Thread

from ingestion.captures.servers import PlannedCapture
from lakehub.source_topics.broken import TopicsError
from lakehub.source_topics.cluster import Bounds, TopicCluster, open_cluster

TIMEOUT_S = 15
"""Of one request, at most: the tap's other connections wait for it."""
AGAIN_S = 60.0
_MOST_AT_ONCE = 32
_SILENT = "A connection to the cluster does not get through, and its datasets wait; others of the cluster do not. Correct the connection, or the account. {}"


@dataclass(frozen=True)
class TopicLook:
    """`id` None: there is no such topic."""

    id: str | None = None
    bounds: Mapping[int, Bounds] = field(default_factory=dict)

    @property
    def ends(self) -> dict[int, int]:
        return {partition: bounds.next for partition, bounds in self.bounds.items()}


@dataclass(frozen=True)
class ClusterLook:
    """`clusters`: by URL, of connections that get through; `topics`: theirs, by topic of the changelog. `silent`: by URL of the others, why."""

    clusters: Mapping[str, TopicCluster] = field(repr=False)
    topics: Mapping[str, TopicLook]
    silent: Mapping[str, str] = field(repr=False)


def look_at_cluster(plan: Sequence[PlannedCapture]) -> ClusterLook:
    """Raises TopicsError where no connection gets through."""
    clusters, seen, silent = dict[str, TopicCluster](), dict[tuple[str, str], TopicLook](), dict[str, TopicsError]()
    names = _topics_by_url(plan)
    with ThreadPoolExecutor(max_workers=min(max(1, len(names)), _MOST_AT_ONCE)) as threads:
        looks = {url: threads.submit(_look_by, url, topics) for url, topics in names.items()}
    for url, look in looks.items():
        try:
            clusters[url], topics = look.result()
            seen |= {(url, topic): each for topic, each in topics.items()}
        except TopicsError as problem:
            silent[url] = problem
    if silent and not clusters:
        raise next(iter(silent.values()))
    own = {each.spec.topic: seen[each.url, each.spec.table] for each in plan if each.url in clusters}
    return ClusterLook(clusters, own, {url: _SILENT.format(problem) for url, problem in silent.items()})


def _topics_by_url(plan: Iterable[PlannedCapture]) -> dict[str, set[str]]:
    names = defaultdict[str, set[str]](set)
    for each in plan:
        names[each.url].add(each.spec.table)
    return dict(names)


def _look_by(url: str, topics: Iterable[str]) -> tuple[TopicCluster, dict[str, TopicLook]]:
    cluster = open_cluster(url, timeout_s=TIMEOUT_S)
    facts = cluster.facts(sorted(topics))
    looks = {topic: TopicLook(each.id, cluster.bounds(topic, each.partitions)) for topic, each in facts.items()}
    return cluster, {topic: looks.get(topic, TopicLook()) for topic in topics}


class LooksAgain:
    """At connections that do not get through, one after the other, beside the reading of all others. `plan`: what is captured by them."""

    def __init__(self, plan: Sequence[PlannedCapture], monotonic: Callable[[], float]) -> None:
        self._topics, self._monotonic = _topics_by_url(plan), monotonic
        self._at, self._heard = monotonic() + AGAIN_S, Event()
        self._thread: Thread | None = None

    def has_heard(self) -> bool:
        """Whether one of them gets through now."""
        is_looking = self._thread is not None and self._thread.is_alive()
        if self._topics and not is_looking and self._monotonic() >= self._at:
            self._at = self._monotonic() + AGAIN_S
            self._thread = Thread(target=self._look, name="looks at topics again", daemon=True)
            self._thread.start()
        return self._heard.is_set()

    def _look(self) -> None:
        for url, topics in self._topics.items():
            with suppress(TopicsError):  # it is told already
                _look_by(url, topics)
                self._heard.set()
