"""Pipelines that were registered: their files, what their jobs are told, and how far they have read their inputs."""
