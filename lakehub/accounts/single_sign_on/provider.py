"""What Lakehub asks of the provider: its description, its keys, and a token for a code. By the code flow with PKCE.

Addresses are the issuer's own: those that its description names, on its host or one of LAKEHUB_OIDC_HOSTS, over HTTPS unless the
issuer is on loopback. Redirects are not followed, answers are bounded in size and time.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from django.conf import settings
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet

MAX_ANSWER_BYTES = 1024 * 1024
_PIECE_BYTES = 64 * 1024
TIMEOUT_S = (5, 10)
"""To connect, and between two reads."""
ANSWERS_WITHIN_S = 20
"""All of an answer."""
WAIT_S = 1
"""For somebody else of this process who asks the provider already: it may be silent, and each who waits holds a thread of the web."""
ASKED_AGAIN_AFTER_S = 10
"""A provider that did not answer is not asked for so long."""
KEPT_S = 3600
"""How long a description and its keys are kept."""
MIN_KEYS_AGE_S = 60
"""Keys are asked for again for an unknown one at most once in so many seconds."""
LEEWAY_S = 60
"""By which the provider's clock may differ."""
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures that only the provider can make: never `none`, never one with a shared secret."""

_NOT_BELIEVED = (
    AuthlibBaseError, JoseError, requests.RequestException, ValueError, TypeError, KeyError, RecursionError,
)  # fmt: skip
"""What the libraries raise for answers that are wrong in one way or another."""


class ProviderError(Exception):
    """The provider cannot be reached, or what it says cannot be believed. The message is for the operator, never with a secret."""


@dataclass(frozen=True)
class Description:
    """What the issuer says about itself (OpenID Connect Discovery)."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str
    auth_methods: tuple[str, ...]


class BoundedSession(OAuth2Session):  # type: ignore[misc]  # publishes no types
    """Asks only places of the issuer's, follows no redirect, and reads so much and so long."""

    def request(self, method: str, url: str, **options: Any) -> requests.Response:
        check_address(url)
        options |= {"timeout": TIMEOUT_S, "allow_redirects": False, "stream": True}
        response: requests.Response = super().request(method, url, **options)
        with response:
            body = _bounded_body(url, response)
        if response.is_redirect:
            raise ProviderError(f"{url} redirects, which is not followed.")
        response._content = body
        return response


def _bounded_body(url: str, response: requests.Response) -> bytes:
    body, until = bytearray(), monotonic() + ANSWERS_WITHIN_S
    while piece := response.raw.read1(_PIECE_BYTES, decode_content=True):
        body += piece
        if len(body) > MAX_ANSWER_BYTES:
            raise ProviderError(f"{url} answers with more than {MAX_ANSWER_BYTES} bytes.")
        if monotonic() > until:
            raise ProviderError(f"{url} has not answered whole within {ANSWERS_WITHIN_S} seconds.")
    return bytes(body)


def check_address(url: str) -> None:
    """Raises ProviderError for a place that is not the issuer's."""
    parts, issuer = urlsplit(url), urlsplit(settings.LAKEHUB_OIDC_ISSUER)
    known = parts.netloc == issuer.netloc or parts.hostname in settings.LAKEHUB_OIDC_HOSTS
    if parts.scheme != issuer.scheme or not known:
        raise ProviderError(
            f"{parts.scheme}://{parts.netloc} is not the issuer's: name its host in LAKEHUB_OIDC_HOSTS if that is right."
        )


def description() -> Description:
    """Kept for an hour. Raises ProviderError."""
    return _KNOWN.description()


def authorization_url(*, redirect_uri: str, state: str, nonce: str, verifier: str, again: bool) -> str:
    """Where the browser goes. Raises ProviderError."""
    asked = {"prompt": "login"} if again else {}
    with _session(redirect_uri) as session:
        url, _ = session.create_authorization_url(
            description().authorization_endpoint, state=state, nonce=nonce, code_verifier=verifier, **asked
        )
    return str(url)


def claims_for_code(code: str, *, redirect_uri: str, nonce: str, verifier: str) -> dict[str, Any]:
    """Who came back, by the ID token: its signature, issuer, audience, nonce and times are right. Raises ProviderError."""
    try:
        with _session(redirect_uri) as session:
            token = session.fetch_token(
                description().token_endpoint, grant_type="authorization_code", code=code, code_verifier=verifier
            )
        return _verified_claims(token, nonce=nonce)
    except _NOT_BELIEVED as problem:
        raise ProviderError(f"{type(problem).__name__}: {problem}") from problem


def forget() -> None:
    """What is kept of the provider, for tests and changed settings."""
    _KNOWN.forget()


def _verified_claims(token: dict[str, Any], *, nonce: str) -> dict[str, Any]:
    """Raises JoseError, ValueError."""
    text = token.get("id_token")
    if not isinstance(text, str):
        raise ValueError("The answer has no ID token.")
    try:
        decoded = jwt.decode(text, _KNOWN.keys(), algorithms=list(ALGORITHMS))
    except InvalidKeyIdError:
        decoded = jwt.decode(text, _KNOWN.keys(newer=True), algorithms=list(ALGORITHMS))
    must = {
        "iss": {"essential": True, "value": settings.LAKEHUB_OIDC_ISSUER},
        "aud": {"essential": True, "value": settings.LAKEHUB_OIDC_CLIENT_ID},
        "nonce": {"essential": True, "value": nonce},
        "sub": {"essential": True},
    }
    parameters = {
        "nonce": nonce,
        "client_id": settings.LAKEHUB_OIDC_CLIENT_ID,
        "access_token": token.get("access_token"),
    }
    claims = CodeIDToken(decoded.claims, decoded.header, must, parameters)
    claims.validate(leeway=LEEWAY_S)
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= 255:
        raise ValueError("The subject is not a text of 1 to 255 characters.")
    return dict(claims)


def _session(redirect_uri: str) -> BoundedSession:
    methods = description().auth_methods
    return BoundedSession(
        settings.LAKEHUB_OIDC_CLIENT_ID,
        settings.LAKEHUB_OIDC_CLIENT_SECRET,
        token_endpoint_auth_method="client_secret_post"
        if methods == ("client_secret_post",)
        else "client_secret_basic",
        scope=" ".join(dict.fromkeys(["openid", *settings.LAKEHUB_OIDC_SCOPES])),
        redirect_uri=redirect_uri,
        code_challenge_method="S256",
    )


class _Known:
    """What this process knows of the provider, by a monotonic clock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        self._description: Description | None = None
        self._keys: KeySet | None = None
        self._description_at = self._keys_at = 0.0
        self._failed_at: float | None = None

    def description(self) -> Description:
        with self._asking():
            if self._description is None or monotonic() - self._description_at > KEPT_S:
                issuer = settings.LAKEHUB_OIDC_ISSUER
                document = self._read(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
                if document.get("issuer") != issuer:
                    raise ProviderError(
                        f"The provider calls itself {str(document.get('issuer'))[:200]!r}, not {issuer!r}."
                    )
                self._description, self._description_at = _described(document), monotonic()
            return self._description

    def keys(self, *, newer: bool = False) -> KeySet:
        uri = self.description().jwks_uri
        with self._asking():
            age = monotonic() - self._keys_at
            if self._keys is None or age > KEPT_S or (newer and age > MIN_KEYS_AGE_S):
                self._keys, self._keys_at = KeySet.import_key_set(self._read(uri)), monotonic()  # type: ignore[arg-type]
            return self._keys

    @contextmanager
    def _asking(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=WAIT_S):
            raise ProviderError("The provider is being asked already, and has not answered yet.")
        try:
            yield
        finally:
            self._lock.release()

    def _read(self, url: str) -> dict[str, Any]:
        """Raises ProviderError, also where the provider was silent just now."""
        if self._failed_at is not None and monotonic() - self._failed_at < ASKED_AGAIN_AFTER_S:
            raise ProviderError(f"The provider did not answer; it is asked again after {ASKED_AGAIN_AFTER_S} seconds.")
        try:
            document = _read_json(url)
        except ProviderError:
            self._failed_at = monotonic()
            raise
        self._failed_at = None
        return document


_KNOWN = _Known()


def _read_json(url: str) -> dict[str, Any]:
    try:
        with BoundedSession(settings.LAKEHUB_OIDC_CLIENT_ID) as session:
            response = session.request("GET", url, withhold_token=True)
        response.raise_for_status()
        document = json.loads(response.content)
    except (requests.RequestException, ValueError, RecursionError) as problem:
        raise ProviderError(f"{url} cannot be read: {type(problem).__name__}: {problem}") from problem
    if not isinstance(document, dict):
        raise ProviderError(f"{url} is not a JSON object.")
    return document


def _described(document: dict[str, Any]) -> Description:
    needed = {name: document.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
    for name, url in needed.items():
        if not isinstance(url, str):
            raise ProviderError(f"The provider's description names no {name}.")
        check_address(url)
    end = document.get("end_session_endpoint")
    if isinstance(end, str):
        check_address(end)
    methods = document.get("token_endpoint_auth_methods_supported")
    known_methods = tuple(str(method) for method in methods) if isinstance(methods, list) else ()
    return Description(
        **{name: str(url) for name, url in needed.items()},
        end_session_endpoint=end if isinstance(end, str) else "",
        auth_methods=known_methods,
    )
