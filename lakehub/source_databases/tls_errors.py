"""Why a server is not spoken to by TLS, in words for people: drivers tell it in those of their library."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping

_OTHER_NAME = (62, 64)
"""Of the library: the certificate has another host name, or another IP address."""
_NOT_OFFERED = (2026, "SSL is required but the server doesn't support it")
"""Of pymysql."""


def tls_problem(problem: BaseException, host: str, port: int | None, options: Mapping[str, object]) -> str | None:
    """`options`: of the URL. None: it is about something else."""
    file = options.get("ssl_ca")
    if file is None:
        return None
    server = f"{host}:{port}"
    for cause in _causes(problem):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _refused_certificate(cause, server, host, file)
        if isinstance(cause, ssl.SSLError) and "NO_CERTIFICATE" in (cause.reason or ""):
            return f"{file}, which `ssl_ca` names, has no certificate: name a file in the format PEM."
        if isinstance(cause, FileNotFoundError | PermissionError):
            return f"{file}, which `ssl_ca` names, cannot be read: {cause.strerror}."
        if cause.args == _NOT_OFFERED:
            return f"{server} offers no TLS, which `ssl_ca` asks for. Set it up on the server (`ssl_cert`, `ssl_key`), or connect without `ssl_ca`."
    return None


def _refused_certificate(problem: ssl.SSLCertVerificationError, server: str, host: str, file: object) -> str:
    if problem.verify_code in _OTHER_NAME:
        return (
            f"The certificate of {server} is for another host: it does not have the name {host}. Connect by a name that it has, or give the server a "
            f"certificate with this one (`subjectAltName`)."
        )
    return (
        f"The certificate of {server} is not trusted ({problem.verify_message}). {file}, which `ssl_ca` names, must have the certificate of the authority "
        "that signed it."
    )


def _causes(problem: BaseException) -> Iterator[BaseException]:
    """SQLAlchemy and pymysql each keep what they were told in an attribute of their own."""
    inner: BaseException | None = problem
    while inner is not None:
        yield inner
        inner = getattr(inner, "orig", None) or getattr(inner, "original_exception", None) or inner.__cause__
