"""Lines of the log: as they were, or one JSON object each; nothing in a value makes a second line, or shows a password."""

from __future__ import annotations

import io
import json
import logging
import logging.config
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from structlog.contextvars import bound_contextvars

from lakehub.environment import InvalidSetting
from lakehub.logs import line_formatter, logging_config

HOSTILE = "flights\n2026-11-16 08:00:00,000 INFO lakehub all is well\r\x1b[2K\u2028end"


@contextmanager
def log_in(log_format: str) -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger of its own, and what it writes."""
    out, logger = io.StringIO(), logging.getLogger("tests.logs")
    handler = logging.StreamHandler(out)
    handler.setFormatter(line_formatter(log_format))
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    yield logger, out
    logger.handlers, logger.propagate = [], True


def test_a_plain_line_is_as_it_was() -> None:
    with log_in("text") as (logger, out):
        logger.warning("%s has no baseline", "flights@dc1")
    at = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"
    assert re.fullmatch(at + r" WARNING tests\.logs flights@dc1 has no baseline\n", out.getvalue())


def test_a_plain_line_ends_with_its_context() -> None:
    with log_in("text") as (logger, out), bound_contextvars(run=12, copy="flights@dc1"):
        logger.info("read")
    assert out.getvalue().endswith(" INFO tests.logs read [copy=flights@dc1 run=12]\n")


def test_a_json_line_has_its_context() -> None:
    with log_in("json") as (logger, out), bound_contextvars(run=12, copy="flights@dc1"):
        logger.info("%d rows", 3)
    line: dict[str, Any] = json.loads(out.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line.pop("timestamp"))
    assert line.pop("pid")
    assert line == {"level": "INFO", "logger": "tests.logs", "message": "3 rows", "run": 12, "copy": "flights@dc1"}


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_hostile_value_stays_on_its_line(log_format: str) -> None:
    with log_in(log_format) as (logger, out), bound_contextvars(copy=HOSTILE):
        logger.info("%s was read", HOSTILE)
    assert len(out.getvalue().splitlines()) == 1
    assert "\x1b" not in out.getvalue()


def test_a_json_line_carries_a_hostile_value_unchanged() -> None:
    with log_in("json") as (logger, out), bound_contextvars(copy=HOSTILE):
        logger.info("%s was read", HOSTILE)
    line = json.loads(out.getvalue())
    assert (line["message"], line["copy"]) == (f"{HOSTILE} was read", HOSTILE)


def test_a_traceback_is_in_the_json_line() -> None:
    with log_in("json") as (logger, out):
        log_failure(logger, HOSTILE)
    (line,) = out.getvalue().splitlines()
    assert json.loads(line)["exception"].endswith(f"ValueError: {HOSTILE}")


def test_no_line_of_a_traceback_looks_like_a_line_of_the_log() -> None:
    with log_in("text") as (logger, out):
        log_failure(logger, HOSTILE)
    first, *below = out.getvalue().splitlines()
    assert first.endswith("ERROR tests.logs failed")
    assert below
    assert all(line.startswith("  ") for line in below)


def log_failure(logger: logging.Logger, problem: str) -> None:
    try:
        raise ValueError(problem)
    except ValueError:
        logger.exception("failed")


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_passwords_and_tokens_are_left_out(log_format: str) -> None:
    token = "lh_0123abcd." + "s3cret-" * 6
    with log_in(log_format) as (logger, out), bound_contextvars(copy="redis://:hunter2@broker/0"):
        log_failure(logger, f"postgresql://ops:hunter2@db:5432/ops is down for {token}")
        logger.info("Authorization: Bearer %s", token)
    assert "hunter2" not in out.getvalue()
    assert "s3cret" not in out.getvalue()
    for shown in ("postgresql://ops:***@db:5432/ops", "redis://:***@broker/0", "lh_0123abcd.***"):
        assert shown in out.getvalue()


FORMS = (
    "postgresql://u:{}@db/x",
    "://:{}@db",
    "https://example.org/hook?password={}",
    "https://example.org/?a=b&access_token={}&c=d",
    "password={} host=db",
    "PASSWD = {}",
    "client_secret={}",
    "https://{}@host",
    "https://hooks.slack.com/services/{}",
    "POST /services/T0/B0/{} failed",
)
SIGNS = st.text(
    st.characters(codec="utf-8", exclude_characters="&:").filter(lambda sign: not sign.isspace()), max_size=20
)


@given(form=st.sampled_from(FORMS), signs=SIGNS, log_format=st.sampled_from(["text", "json"]))
@example(form=FORMS[0], signs="/", log_format="text")
@example(form=FORMS[0], signs="token=", log_format="text")
@example(form=FORMS[2], signs="@", log_format="text")
@example(form=FORMS[4], signs="'", log_format="text")
def test_a_secret_never_comes_out(form: str, signs: str, log_format: str) -> None:
    secret = form.format(f"hush{signs}hush")
    with log_in(log_format) as (logger, out), bound_contextvars(deep={"list": [secret, (secret,)], secret: {secret}}):
        log_failure(logger, secret)
        logger.info("before %s after", secret)
    assert "hush" not in out.getvalue()
    assert "before " in out.getvalue()
    assert log_format == "text" or [json.loads(line) for line in out.getvalue().splitlines()]


@given(log_format=st.sampled_from(["text", "json"]), signs=st.text(max_size=20))
def test_what_a_mapping_calls_secret_never_comes_out(log_format: str, signs: str) -> None:
    options = {"user": "ops", "db_password": f"hush{signs}hush", "auth": [{"Token": ["hush"]}], "sig": 907}
    with log_in(log_format) as (logger, out), bound_contextvars(options=options, api_key="hush"):
        logger.info("%s", options)
    assert "hush" not in out.getvalue()
    assert "'sig': 907" not in out.getvalue().replace('"', "'").partition("options")[2]
    assert "ops" in out.getvalue()


@pytest.mark.parametrize(
    "hostile", ["://", "://@", "password='", "token=\\", "/services/T", "sig ", "://a:", "lh_0123abcd."]
)
def test_a_long_line_is_masked_in_the_time_of_its_length(hostile: str) -> None:
    started = time.process_time()
    with log_in("text") as (logger, _):
        logger.info(hostile * 30_000)
    assert time.process_time() - started < 2


def test_what_goes_round_is_shown() -> None:
    loop: dict[str, Any] = {"password": "hush"}
    loop["loop"] = loop
    with log_in("json") as (logger, out), bound_contextvars(loop=loop):
        logger.info("round")
    assert "hush" not in out.getvalue()
    assert json.loads(out.getvalue())["message"] == "round"


def test_what_is_no_secret_is_left_as_it_is() -> None:
    harmless = (
        "http://127.0.0.1:8000/a and https://lakehub.a-very-long-label-of-an-example.org: see 12:30 mail@example.org, "
        "3 tokens, the token of 12 = 3 * 4, no password: design=new, https://hooks.slack.com is down"
    )
    with log_in("text") as (logger, out):
        logger.info(harmless)
    assert harmless in out.getvalue()


def test_of_what_a_library_adds_to_a_record_only_known_fields_are_shown() -> None:
    with log_in("json") as (logger, out):
        logger.warning("Not Found", extra={"status_code": 404, "request": "<WSGIRequest /?token=hush>", "data": "hush"})
    line = json.loads(out.getvalue())
    assert line["status_code"] == 404
    assert "hush" not in out.getvalue()


def test_what_cannot_be_json_is_shown_in_words() -> None:
    with log_in("json") as (logger, out), bound_contextvars(level="shadow", when={1, 2}):
        logger.info("odd")
    line = json.loads(out.getvalue())
    assert (line["level"], line["when"]) == ("INFO", "{1, 2}")


def test_the_environment_says_format_and_level(monkeypatch: pytest.MonkeyPatch) -> None:
    assert logging_config()["formatters"]["line"]["log_format"] == "text"
    monkeypatch.setenv("LAKEHUB_LOG_FORMAT", "json")
    monkeypatch.setenv("LAKEHUB_LOG_LEVEL", "WARNING")
    config = logging_config()
    assert config["formatters"]["line"]["log_format"] == "json"
    assert config["root"]["level"] == "WARNING"


@pytest.mark.parametrize(("name", "value"), [("LAKEHUB_LOG_FORMAT", "jsn"), ("LAKEHUB_LOG_LEVEL", "LOUD")])
def test_another_word_is_refused_by_name(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidSetting, match=f"{name}='{value}' is not known"):
        logging_config()
