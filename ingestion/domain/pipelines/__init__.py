"""Pipelines: tables that are kept right from what changed in others. What their files say, and which rows a change reaches."""
