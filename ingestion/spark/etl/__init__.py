"""Pipelines: what changed in the inputs, which rows of the target that reaches, and these recomputed."""
