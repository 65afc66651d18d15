"""Where a checkpoint is stored: in the metadata of the commit that it belongs to, beside the run that made it.

So both are there, or neither is. `Timeline` reads it back; `ingestion.domain.checkpoint` says which one counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

METADATA_PREFIX = "lakehub."
CHECKPOINT_KEY, RUN_KEY = "lakehub.checkpoint", "lakehub.run"


def commit_metadata(*, run: Mapping[str, Any], checkpoint: Mapping[str, Any] | None) -> dict[str, str]:
    """What a commit of ours carries: which run made it, and where the source stands after it."""
    carried = {RUN_KEY: json.dumps(run, sort_keys=True)}
    return carried if checkpoint is None else carried | {CHECKPOINT_KEY: json.dumps(checkpoint, sort_keys=True)}
