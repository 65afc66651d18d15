"""Lakehub for programs that read or write data: ask the gate, wait for it, tell that a pipeline has finished.

The standard library is all it needs: copy the folder, or put the checkout on the path. `lakehub_client.airflow` needs Airflow.
"""

from __future__ import annotations

from lakehub_client.client import Answer, Client, Input, LakehubError

__all__ = ["Answer", "Client", "Input", "LakehubError"]
