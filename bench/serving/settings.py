"""The product's own settings, with one more address, what the gate is compared with; and limits that all questions are counted against,
as in production, and that no bench reaches: of what is refused nothing could be measured."""

from lakehub.settings import *  # noqa: F403

ROOT_URLCONF = "bench.serving.urls"
LAKEHUB_ADDRESS_RATE = LAKEHUB_API_RATE = LAKEHUB_GATE_RATE = 1_000_000
