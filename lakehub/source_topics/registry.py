"""The registry that has the schemas of a topic's messages: Confluent's, or one that speaks as it does, such as Lakehub's own."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any
from urllib.parse import unquote, urlsplit

from lakehub.kernel.avro_files import BadAvro, read_schema_text
from lakehub.source_topics import broken
from lakehub.source_topics.broken import BadMessage, RegistrySilent

_TIMEOUT_S = 10
ASK_AGAIN_S, REST = 5.0, 5
"""After a registry that did not answer, and as many times as long as that took: whoever asks has others to serve."""
_MOST_BYTES = 2 * 2**20
_UNKNOWN_ID = 404
_IDS = 2**31
"""Registries count below: one of them may call a greater number a mistake of whoever asks, and whoever writes a message may write any."""
MOST_REFUSED, UNKNOWN_S = 10_000, 5.0
"""Numbers of which is remembered why no message is read by them; for so long of one that is not there, which may be registered yet."""


class _NotThere(BadMessage):
    """The number has no schema yet."""


@dataclass
class SchemaRegistry:
    """`url`: empty: there is none. Each schema is asked for once, also one that cannot be read by; one that is not there, again after a while."""

    url: str = field(repr=False)
    monotonic: Callable[[], float] = time.monotonic
    _known: dict[int, Any] = field(default_factory=dict, repr=False)
    _refused: OrderedDict[int, tuple[str, float]] = field(default_factory=OrderedDict, repr=False)
    """Why, and until when; the one that was named last is last."""
    _silence: RegistrySilent | None = field(default=None, repr=False)
    """Why it was not reached; until then it is not tried."""

    def schema(self, number: int) -> Any:
        """As fastavro reads by it. Raises BadMessage where there is none that can be read, RegistrySilent where the registry does not answer."""
        if not self.url:
            raise BadMessage(
                broken.UNKNOWN_SCHEMA,
                f"The message is in Avro, by schema {number}, and the connection names no registry. Write registry=https://... into its URL.",
            )
        if number >= _IDS:
            raise BadMessage(
                broken.UNKNOWN_SCHEMA, f"No registry has a schema {number:,}: their numbers are below {_IDS:,}."
            )
        if number not in self._known:
            self._require_not_refused(number)
            self._known[number] = self._remembering(number)
        return self._known[number]

    def _require_not_refused(self, number: int) -> None:
        why, until = self._refused.get(number, ("", -inf))
        if self.monotonic() < until:
            self._refused.move_to_end(number)
            raise BadMessage(broken.UNKNOWN_SCHEMA, why)

    def _remembering(self, number: int) -> Any:
        try:
            return self._ask(number)
        except BadMessage as problem:
            until = self.monotonic() + UNKNOWN_S if isinstance(problem, _NotThere) else inf
            self._refused[number] = (str(problem), until)
            self._refused.move_to_end(number)
            if len(self._refused) > MOST_REFUSED:
                self._refused.popitem(last=False)
            raise

    def _ask(self, number: int) -> Any:
        status, body = self._answer(f"/schemas/ids/{number}")
        if status == _UNKNOWN_ID:
            raise _NotThere(broken.UNKNOWN_SCHEMA, f"The registry has no schema {number}.")
        if status == http.client.OK and len(body) >= _MOST_BYTES:
            raise BadMessage(
                broken.UNKNOWN_SCHEMA, f"Schema {number} has more than {_MOST_BYTES // 2**20} MiB, and is not read."
            )
        try:
            answer = json.loads(body) if status == http.client.OK else None
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or not isinstance(answer.get("schema"), str):
            raise RegistrySilent(
                f"The registry of schemas at {self._host} answered {status} when it was asked for one. {_REMEDY}",
                self.monotonic() + ASK_AGAIN_S,
            )
        if answer.get("schemaType", "AVRO") != "AVRO" or answer.get("references"):
            raise BadMessage(
                broken.UNKNOWN_SCHEMA,
                f"Schema {number} is not Avro by itself: JSON Schema, Protobuf and references are not read.",
            )
        try:
            return read_schema_text(answer["schema"])
        except BadAvro as problem:
            raise BadMessage(broken.UNKNOWN_SCHEMA, f"Schema {number} cannot be read by: {problem}.") from problem

    @property
    def _host(self) -> str:
        return urlsplit(self.url).hostname or ""

    def _answer(self, path: str) -> tuple[int, bytes]:
        began = self.monotonic()
        if self._silence is not None and began < self._silence.until:
            raise RegistrySilent(str(self._silence), self._silence.until)
        try:
            return self._get(path)
        except (OSError, http.client.HTTPException) as problem:
            now = self.monotonic()
            self._silence = RegistrySilent(
                f"The registry of schemas at {self._host} was not reached: {problem or type(problem).__name__}. {_REMEDY}",
                now + ASK_AGAIN_S + REST * (now - began),
            )
            raise RegistrySilent(str(self._silence), self._silence.until) from problem

    def _get(self, path: str) -> tuple[int, bytes]:
        """Whoever is sent elsewhere does not go there. Raises OSError, HTTPException."""
        parts = urlsplit(self.url)
        headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        connection = self._connection(parts.scheme, parts.port)
        try:
            connection.request("GET", parts.path.rstrip("/") + path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(_MOST_BYTES)
        finally:
            connection.close()

    def _connection(self, scheme: str, port: int | None) -> http.client.HTTPConnection:
        if scheme == "http":
            return http.client.HTTPConnection(self._host, port, timeout=_TIMEOUT_S)
        return http.client.HTTPSConnection(self._host, port, timeout=_TIMEOUT_S, context=ssl.create_default_context())


_REMEDY = "Check that it runs, that this machine reaches it, and `registry` in the connection's URL."
