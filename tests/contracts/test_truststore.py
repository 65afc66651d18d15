from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, pkcs12
from cryptography.x509.oid import NameOID

from lakehub.setup.truststore import PASSWORD, write_java_truststore


def authority(name: str) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(datetime(2026, 1, 1, tzinfo=UTC)).not_valid_after(
        datetime(2036, 1, 1, tzinfo=UTC)
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def names_in(truststore: Path) -> set[str]:
    certificates = pkcs12.load_pkcs12(truststore.read_bytes(), PASSWORD.encode()).additional_certs
    return {each.certificate.subject.rfc4514_string() for each in certificates}


def test_java_gets_every_authority_that_python_trusts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, public = authority("the company's proxy"), authority("a public authority")
    (tmp_path / "bundle.pem").write_bytes(b"# a comment\n" + proxy + public + proxy)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "bundle.pem"))
    assert write_java_truststore(tmp_path / "trusted.p12")
    assert names_in(tmp_path / "trusted.p12") == {"CN=the company's proxy", "CN=a public authority"}


def test_a_folder_of_certificates_serves_where_there_is_no_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs" / "0a1b2c3d.0").write_bytes(authority("one of a folder"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nowhere.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "certs"))
    assert write_java_truststore(tmp_path / "trusted.p12")
    assert names_in(tmp_path / "trusted.p12") == {"CN=one of a folder"}


def test_nothing_is_written_where_python_names_no_authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nowhere.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "nowhere"))
    assert not write_java_truststore(tmp_path / "trusted.p12")
    assert not (tmp_path / "trusted.p12").exists()
