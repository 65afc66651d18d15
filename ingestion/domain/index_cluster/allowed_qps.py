"""Requests a second: what a fraction allows a job.

A table sends its requests to its regions evenly, as its keys are hashed or spread over them. So each server gets `qps_per_server * fraction` of it, or less, and
of all tables together no more than the QPS that it was benchmarked with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from ingestion.domain.index_cluster.fractions import WHOLE


def even_servers(servers: Iterable[str]) -> int:
    """`servers`: that of each region of a table. As how many servers they count: where one hosts more regions than others, it is that one which may not be asked
    for more than it answers. 0: there is no region."""
    regions = Counter(servers)
    return regions.total() // max(regions.values(), default=1)


def allowed_qps(servers: int, qps_per_server: int, parts: int) -> Fraction:
    """Of a job that holds so many parts of WHOLE, while so many servers host the table: adding a server raises it."""
    return Fraction(servers * qps_per_server * parts, WHOLE)
