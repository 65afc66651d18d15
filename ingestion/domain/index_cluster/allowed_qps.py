"""Requests a second: what a fraction allows a job.

A table sends its requests to the servers that host it, evenly, as its keys are hashed or spread over its regions. So each server gets
`qps_per_server * fraction` of it, and of all tables together no more than the QPS that it was benchmarked with.
"""

from __future__ import annotations

from fractions import Fraction

from ingestion.domain.index_cluster.fractions import WHOLE


def allowed_qps(servers: int, qps_per_server: int, parts: int) -> Fraction:
    """Of a job that holds so many parts of WHOLE, while so many servers host the table: adding a server raises it."""
    return Fraction(servers * qps_per_server * parts, WHOLE)
