"""The product's own settings, with one more address: what the gate is compared with."""

from lakehub.settings import *  # noqa: F403

ROOT_URLCONF = "bench.serving.urls"
