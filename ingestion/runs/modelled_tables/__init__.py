"""Pipelines as people register them: by page, API and command."""
