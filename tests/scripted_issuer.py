"""A provider of OpenID Connect on loopback whose every answer a test writes: for what no honest provider says."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import time
from typing import Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from tests.polling import scaled

CLIENT_ID, CLIENT_SECRET = "lakehub-tests", "a secret of 32 characters or more"


@dataclass
class ScriptedIssuer:
    url: str
    key: RSAKey = field(
        default_factory=lambda: RSAKey.generate_key(2048, {"kid": "first", "alg": "RS256", "use": "sig"})
    )
    claims: dict[str, Any] = field(default_factory=dict)
    """Of the next ID token, over those that are right; None leaves one out."""
    description: dict[str, Any] = field(default_factory=dict)
    """Over what is right."""
    published: list[RSAKey] | None = None
    """None: the key that signs."""
    token_answer: dict[str, Any] | bytes | None = None
    """In place of the right one."""
    redirect_to: str = ""
    """Where the token endpoint sends its callers."""
    header: dict[str, Any] = field(default_factory=lambda: {"alg": "RS256", "kid": "first"})
    asked: list[tuple[str, dict[str, list[str]], str]] = field(default_factory=list)
    """Path, form and Authorization of every request."""

    def described(self) -> dict[str, Any]:
        places = {
            "authorization_endpoint": "authorize",
            "token_endpoint": "token",
            "jwks_uri": "keys",
            "end_session_endpoint": "end",
        }
        document: dict[str, Any] = {name: f"{self.url}/{path}" for name, path in places.items()}
        return {"issuer": self.url, **document, **self.description}

    def keys(self) -> dict[str, Any]:
        return {"keys": [key.as_dict(private=False) for key in self.published or [self.key]]}

    def id_token(self) -> str:
        now = int(time())
        right = {"iss": self.url, "aud": CLIENT_ID, "sub": "s-1", "iat": now, "exp": now + 300}
        claims = {name: value for name, value in (right | self.claims).items() if value is not None}
        if self.header["alg"] == "none":
            return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."
        if self.header["alg"] == "HS256":  # signed with what everybody knows
            return jwt.encode(
                self.header, claims, OctKey.import_key(self.key.as_pem(private=False)), algorithms=["HS256"]
            )
        return jwt.encode(self.header, claims, self.key)

    def token(self) -> bytes:
        if isinstance(self.token_answer, bytes):
            return self.token_answer
        right = {"access_token": "x", "token_type": "Bearer", "expires_in": 60, "id_token": self.id_token()}
        return json.dumps(right if self.token_answer is None else self.token_answer).encode()


@contextmanager
def scripted_issuer() -> Iterator[ScriptedIssuer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked.append((self.path, {}, ""))
            answer = {"/.well-known/openid-configuration": issuer.described, "/keys": issuer.keys}.get(self.path)
            self._answer(json.dumps(answer()).encode() if answer else b"", 200 if answer else 404)

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            issuer.asked.append((self.path, form, self.headers.get("Authorization", "")))
            self._answer(issuer.token(), 302 if issuer.redirect_to else 200)

        def _answer(self, body: bytes, status: int) -> None:
            self.send_response(status)
            if status == 302:
                self.send_header("Location", issuer.redirect_to)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Tests look at `asked`."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer = ScriptedIssuer(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield issuer
        server.shutdown()
        thread.join(scaled(10))


def _encoded(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
