"""The certificate authorities that Python trusts, in the form that Java reads.

A Java runtime from a wheel knows only the list that it was built with; behind a company's proxy that is not enough.
"""

from __future__ import annotations

import re
import ssl
import warnings
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.utils import CryptographyDeprecationWarning

PASSWORD = "changeit"  # noqa: S105  Java's own default: the list is public, the password only checks that it is whole.
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def write_java_truststore(path: Path) -> bool:
    """Write a PKCS#12 trust store; False, and nothing written, where Python names no authorities of its own."""
    certificates = list(_trusted_by_python())
    if not certificates:
        return False
    entries = [
        pkcs12.PKCS12Certificate(certificate, f"ca-{number}".encode())
        for number, certificate in enumerate(certificates)
    ]
    path.write_bytes(pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(PASSWORD.encode())))
    return True


def _trusted_by_python() -> Iterator[x509.Certificate]:
    """Each authority once, from the bundle that Python uses, else from its folder of certificates."""
    seen_pems: set[bytes] = set()
    for file in _certificate_files():
        for pem in _PEM.findall(file.read_bytes()):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CryptographyDeprecationWarning)
                certificate = x509.load_pem_x509_certificate(pem)
            if pem not in seen_pems:
                seen_pems.add(pem)
                yield certificate


def _certificate_files() -> list[Path]:
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        return [Path(paths.cafile)]
    folder = Path(paths.capath) if paths.capath else None
    return sorted(file for file in folder.iterdir() if file.is_file()) if folder and folder.is_dir() else []
