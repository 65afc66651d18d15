"""The windows of time that scores are offered for."""

from __future__ import annotations

WINDOW_CHOICES = ((7, "7 d"), (30, "30 d"), (90, "90 d"), (365, "1 y"))
