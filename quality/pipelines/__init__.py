"""Pipelines that others run: they tell that a run has finished, and what it wrote is tested at once."""
