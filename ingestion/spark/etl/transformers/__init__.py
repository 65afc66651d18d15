"""Transformers of pipelines: functions of the operator's Python files, run in a process of their own that knows no secret and may end as it likes."""
