"""The REST API of Lakehub, as far as pipelines need it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

TIMEOUT_S = 10.0


class LakehubError(RuntimeError):
    """It was reached and said no; or nothing came back that is an answer of Lakehub's (status 0). `fields` says why for each.

    `retry_after`: seconds after which the same may be answered; None where Lakehub does not say.
    """

    def __init__(
        self, status: int, message: str, fields: Mapping[str, Any] | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.fields = dict(fields or {})
        self.retry_after = retry_after

    @property
    def is_transient(self) -> bool:
        """No answer, too often, or an error of the server's: by the next time that may be over."""
        return self.status in (0, 408, 429) or self.status >= 500


@dataclass(frozen=True)
class Input:
    """A range of a dataset, `[start, end)`: dates of the dataset's own zone, or times with an offset. No `data_center`: the token's."""

    dataset: str
    start: str | date | datetime
    end: str | date | datetime
    data_center: str = ""


@dataclass(frozen=True)
class Answer:
    """To all inputs together; `answers` has each, as the API gives it. `retry_after` is in seconds."""

    verdict: str
    allowed: bool
    retry_after: float | None
    answers: tuple[Mapping[str, Any], ...] = field(default=())

    @property
    def why(self) -> str:
        """What blocks, in words."""
        return "; ".join(_blocked_reason(answer) for answer in self.answers if not answer["allowed"])


class Client:
    """`Client("https://lakehub.example.org", "lh_...")`. Raises LakehubError."""

    def __init__(self, url: str, token: str, *, timeout: float = TIMEOUT_S) -> None:
        if not url.startswith(("https://", "http://")):
            raise ValueError(f"`{url}` is no address of Lakehub: write https://host.")
        self.url = url.rstrip("/")
        self._token = token
        self._timeout = timeout
        self._opener = build_opener(_NoRedirects)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Client:
        """`LAKEHUB_URL` and `LAKEHUB_TOKEN`. Raises LakehubError where one is missing."""
        missing = [name for name in ("LAKEHUB_URL", "LAKEHUB_TOKEN") if not environ.get(name)]
        if missing:
            raise LakehubError(0, f"Set {' and '.join(missing)}, or pass a Client: where is Lakehub, and who asks?")
        return cls(environ["LAKEHUB_URL"], environ["LAKEHUB_TOKEN"])

    def gate(self, inputs: Sequence[Input], *, request_id: str = "") -> Answer:
        """May all of these be read now? `request_id` names the job that asks: it is counted once."""
        input_fields = [
            {"dataset": item.dataset, "from": api_text(item.start), "to": api_text(item.end), "dc": item.data_center}
            for item in inputs
        ]
        return self._ask_gate("gate", {"inputs": input_fields, "request_id": request_id})

    def gate_of_query(self, sql: str, *, dialect: str = "ansi", data_center: str = "", request_id: str = "") -> Answer:
        """May this query run now? Lakehub finds what it reads; nothing of it is run."""
        body = {"sql": sql, "dialect": dialect, "dc": data_center, "request_id": request_id}
        return self._ask_gate("gate/query", body)

    def pipeline_finished(
        self,
        dataset: str,
        start: str | date | datetime = "",
        end: str | date | datetime = "",
        *,
        run_id: str,
        data_center: str = "",
        link: str = "",
    ) -> Mapping[str, Any]:
        """A run has written `[start, end)`: what it wrote is tested at once. Told again with the same `run_id`, nothing happens."""
        body = {"dataset": dataset, "from": api_text(start), "to": api_text(end), "dc": data_center, "run_id": run_id}
        return self.post("pipelines/finished", {**body, "link": link})

    def request_run(
        self,
        dataset: str,
        kind: str = "incremental",
        *,
        params: Mapping[str, Any] | None = None,
        data_center: str = "",
    ) -> Mapping[str, Any]:
        """Asks for a job of a dataset that Lakehub ingests: the run as the API has it. 409: such an incremental waits or runs already."""
        body = {"kind": kind, "params": dict(params or {}), "data_center": data_center}
        return self.post(f"datasets/{_in_path(dataset)}/runs", body)

    def run(self, dataset: str, number: int) -> Mapping[str, Any]:
        return self.get(f"datasets/{_in_path(dataset)}/runs/{number}")

    def runs(self, dataset: str, *, limit: int = 50) -> Sequence[Mapping[str, Any]]:
        """The newest, newest first."""
        return self._results(f"datasets/{_in_path(dataset)}/runs?limit={limit}")

    def request_backfill(
        self,
        dataset: str,
        *,
        first: str = "",
        last: str = "",
        partitions: Sequence[str] = (),
        chunk_size: int | None = None,
        data_center: str = "",
    ) -> Mapping[str, Any]:
        """Asks for partitions of a modelled table to be recomputed, chunk by chunk: from `first` to `last`, or those that are named. 409: another backfill is open."""
        body = {"first": first, "last": last, "partitions": list(partitions), "data_center": data_center}
        size = {} if chunk_size is None else {"chunk_size": chunk_size}
        return self.post(f"datasets/{_in_path(dataset)}/backfills", {**body, **size})

    def backfill(self, dataset: str, number: int) -> Mapping[str, Any]:
        return self.get(f"datasets/{_in_path(dataset)}/backfills/{number}")

    def backfills(self, dataset: str, *, limit: int = 50) -> Sequence[Mapping[str, Any]]:
        """The newest, newest first."""
        return self._results(f"datasets/{_in_path(dataset)}/backfills?limit={limit}")

    def _results(self, path: str) -> Sequence[Mapping[str, Any]]:
        got = self.get(path)
        try:
            return list(got["results"])
        except (KeyError, TypeError) as problem:
            raise self._invalid_response(problem) from problem

    def _ask_gate(self, path: str, body: Mapping[str, Any]) -> Answer:
        got = self.post(path, body)
        try:
            return Answer(got["verdict"], got["allowed"], got["retry_after"], tuple(got["answers"]))
        except (KeyError, TypeError) as problem:
            raise self._invalid_response(problem) from problem

    def post(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the API answers to `/api/v1/<path>`: an object."""
        return self._answer("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def get(self, path: str) -> Mapping[str, Any]:
        return self._answer("GET", path, None, {})

    def _answer(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Mapping[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}", **headers}
        request = Request(f"{self.url}/api/v1/{path}", body, headers, method=method)  # noqa: S310  checked above
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                got = json.load(answer)
        except HTTPError as error:
            raise _error_of_response(error) from None
        except OSError as error:
            raise LakehubError(0, f"{self.url} was not reached: {error}") from error
        except (HTTPException, ValueError) as error:
            raise self._invalid_response(error) from error
        if not isinstance(got, dict):
            raise self._invalid_response(f"{type(got).__name__} in place of an object")
        return got

    def _invalid_response(self, why: object) -> LakehubError:
        """A proxy's page, or an answer that was cut short."""
        return LakehubError(0, f"What came from {self.url} is no answer of Lakehub's: {why!r}")


def api_text(at: str | date | datetime) -> str:
    """As the API reads it. A time without an offset could be any zone's: it is refused."""
    if isinstance(at, str):
        return at
    if isinstance(at, datetime) and at.tzinfo is None:
        raise ValueError(f"{at.isoformat()} has no offset: give it a time zone, or pass a date.")
    return at.isoformat()


def _in_path(name: str) -> str:
    return quote(name, safe="")


class _NoRedirects(HTTPRedirectHandler):
    """The token goes to the address that was named, and no other."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def _error_of_response(error: HTTPError) -> LakehubError:
    wait = error.headers.get("Retry-After", "")
    retry_after = float(wait) if wait.isdecimal() else None
    try:
        error_body = json.loads(error.read())["error"]
        return LakehubError(error.code, error_body["message"], error_body.get("fields"), retry_after)
    except (OSError, HTTPException, ValueError, KeyError, TypeError, AttributeError):  # the status says enough
        return LakehubError(error.code, f"{error.url} answered {error.code} {error.reason}", None, retry_after)


def _blocked_reason(answer: Mapping[str, Any]) -> str:
    causes = dict.fromkeys(f"{cause['verdict']}: {cause['reason']}" for cause in answer["reasons"] if cause["blocks"])
    incidents = "".join(f", incident #{number}" for number in answer["incidents"])
    return f"{answer['dataset']}@{answer['data_center']} is {', '.join(causes)}{incidents}"
