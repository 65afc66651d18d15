"""What every process writes to its log: plain lines, or with `LAKEHUB_LOG_FORMAT=json` one JSON object a line.

Modules log with `logging.getLogger(__name__)`. What is bound with `structlog.contextvars.bound_contextvars` stands in each line
that is logged meanwhile: the request, the task, the job run, the claim. `repeats` keeps what
says the same again and again from filling the disk. No Django: jobs on a cluster use this too.
"""

from __future__ import annotations

import logging.config
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from textwrap import indent
from typing import Any

from structlog.contextvars import merge_contextvars
from structlog.processors import JSONRenderer, format_exc_info
from structlog.stdlib import ExtraAdder, ProcessorFormatter
from structlog.typing import EventDict, Processor

from lakehub import environment as env

FORMATS = ("text", "json")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
EXTRA_FIELDS = ("status_code", "message_id", "incident")
"""Of what modules and libraries pass as `extra`; a request or a task's arguments may hold what is secret."""
_QUIET_LOGGERS = ("py4j", "celery.worker.strategy", "celery.app.trace", "celery.beat")
"""Log each call, or each task, at INFO."""
_URL = re.compile(r"://(\S+)")
"""The rest of the word in one match: a long line takes no longer than its length, whatever is in it."""
_SECRET_NAME = re.compile(r"(?:password|passwd|pwd|secret|token|sig|signature|api[_-]?key)$", re.IGNORECASE)
_SECRET_VALUE = re.compile(
    # `password=`, `access_token =`, `"secret": `; then what is quoted, and all up to white space or `&`.
    r"""((?:password|passwd|pwd|secret|token|sig|signature|api[_-]?key)(?:\s*=\s*|['"]\s*:\s*))"""
    r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")?(?:[^\s&\\]|\\.)*""",
    re.IGNORECASE | re.DOTALL,
)
_SLACK_PATH = re.compile(r"(hooks\.slack(?:-gov)?\.com(?::\d+)?/|/services/(?=T\w*/B\w*/))\S+", re.IGNORECASE)
"""The path of a webhook is its secret; an error of the HTTP client shows it without the host."""
_TOKEN = re.compile(r"\b(lh_[0-9a-f]{8})\.[\w-]{20,}")
_DEPTH = 5
"""So deep are containers looked into; what lies deeper is shown as text."""
_ESCAPES = {number: repr(chr(number))[1:-1] for number in (*range(32), *range(127, 160), 0x2028, 0x2029)}
"""What ends a line, or moves the cursor of who reads it."""


def logging_config() -> dict[str, Any]:
    """For `logging.config.dictConfig`, from the environment. Raises InvalidSetting."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": "lakehub.logs.line_formatter", "log_format": log_format()}},
        "filters": {"repeats": {"()": "lakehub.logs.repeats.RepeatLimit"}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["repeats"]}},
        "root": {"handlers": ["console"], "level": env.choice("LAKEHUB_LOG_LEVEL", "INFO", LEVELS)},
        # Django gives its own loggers handlers of their own: each line once, in one form.
        "loggers": {name: {"handlers": [], "propagate": True} for name in ("django", "django.server")}
        | {name: {"level": "WARNING"} for name in _QUIET_LOGGERS},
    }


def log_format() -> str:
    """`text` or `json`. Raises InvalidSetting."""
    return env.choice("LAKEHUB_LOG_FORMAT", "text", FORMATS)


def configure_logging() -> None:
    """For a process without Django, which has its own call. Raises InvalidSetting."""
    logging.config.dictConfig(logging_config())


def line_formatter(log_format: str) -> ProcessorFormatter:
    """Records of the standard library as lines of this format."""
    extra: list[Processor] = [ExtraAdder(EXTRA_FIELDS)] if log_format == "json" else []
    return ProcessorFormatter(
        foreign_pre_chain=[merge_contextvars, *extra],
        processors=[
            _add_record_fields,
            format_exc_info,
            _hide_credentials,
            JSONRenderer() if log_format == "json" else _render_text,
        ],
    )


def _add_record_fields(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """When, how bad, where and what come first, whatever a context calls its values."""
    record: logging.LogRecord = event.pop("_record")
    del event["_from_structlog"]
    return {
        "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname,
        "logger": record.name,
        "message": event.pop("event"),
        "pid": record.process,
    } | {
        name: value for name, value in sorted(event.items()) if name not in ("timestamp", "level", "logger", "message")
    }


def _hide_credentials(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """A net below: whoever logs an address leaves its secrets out (`lakehub.kernel.addresses`); what a driver raises may not."""
    return {name: _masked(name, value) for name, value in event.items()}


def _masked(name: object, value: Any, depth: int = _DEPTH) -> Any:
    """What a field, or a key of a mapping, may show."""
    if value is not None and isinstance(name, str) and _SECRET_NAME.search(name):
        return "***"
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping) and depth:
        return {_without_credentials(str(key)): _masked(key, inner, depth - 1) for key, inner in value.items()}
    if isinstance(value, list | tuple) and depth:
        return [_masked("", inner, depth - 1) for inner in value]
    return _without_credentials(str(value))


def _without_credentials(text: str) -> str:
    text = _URL.sub(_mask_user_information, _SLACK_PATH.sub(r"\1***", text))
    return _TOKEN.sub(r"\1.***", _SECRET_VALUE.sub(r"\1***", text))


def _mask_user_information(url: re.Match[str]) -> str:
    """Up to the last `@`: a password that nobody has quoted may hold any sign. So may a value in the query: then all is masked."""
    information, at, rest = url[1].rpartition("@")
    if not at:
        return url[0]
    if _SECRET_VALUE.search(information):
        return "://***"
    user, colon, _ = information.partition(":")
    return f"://{user}:***@{rest}" if colon and "/" not in user else f"://***@{rest}"


def _render_text(_logger: Any, _method: str, event: EventDict) -> str:
    """The record's line, its context, and below it, indented, where it comes from."""
    at = datetime.fromisoformat(event.pop("timestamp"))
    level, name, message = event.pop("level"), event.pop("logger"), _on_one_line(event.pop("message"))
    del event["pid"]
    below = [event.pop(part) for part in ("exception", "stack_info") if part in event]
    context = " ".join(f"{key}={_on_one_line(value)}" for key, value in event.items())
    first = f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03} {level} {name} {message}"
    lines = [line for text in below for line in str(text).split("\n")]
    return "\n".join(
        [f"{first} [{context}]" if context else first, *(indent(_on_one_line(line), "  ") for line in lines)]
    )


def _on_one_line(value: object) -> str:
    return str(value).translate(_ESCAPES)
