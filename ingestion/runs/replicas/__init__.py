"""Copies that are replicated from another data center: how one becomes such a copy, when its jobs are due, and which it refuses."""
