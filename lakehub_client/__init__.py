"""Lakehub for programs that read or write data: ask the gate, wait for it, tell that a pipeline has finished, ask for runs.

The standard library is all it needs: copy the folder, or put the checkout on the path. `lakehub_client.airflow` needs Airflow.
"""

from __future__ import annotations

from lakehub_client.client import Answer, Client, Input, LakehubError
from lakehub_client.quality import Blocked, require_quality, wait_for

__all__ = ["Answer", "Blocked", "Client", "Input", "LakehubError", "require_quality", "wait_for"]
