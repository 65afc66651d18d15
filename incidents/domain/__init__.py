"""Incidents as pure values: spans, lifecycle, suppression, gate and scores. No Django, no clock, no network, no randomness."""
