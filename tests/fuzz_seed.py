"""The seed of a random suite: a fresh one each time, unless `LAKEHUB_FUZZ_SEED` repeats an earlier one. Whoever fails names it."""

from __future__ import annotations

import os
import secrets

SEED = int(os.environ.get("LAKEHUB_FUZZ_SEED") or secrets.randbelow(10**9))
REPEAT = f"LAKEHUB_FUZZ_SEED={SEED} repeats it"
