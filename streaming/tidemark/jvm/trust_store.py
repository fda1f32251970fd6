"""A trust store for the wheel's Java: the certificate authorities that Python trusts here.

A distribution's JDK knows the system's authorities, the wheel's only its own: it reaches nothing
behind a proxy that signs with an authority of the company. The file is a JKS, as
sun.security.provider.JavaKeyStore writes it; certificates need no password.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tidemark.jvm.cache import cache_dir

# Where distributions keep them, if OpenSSL has a folder instead of a file.
SYSTEM_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
# Far above the 150 of a system.
MAX_CERTIFICATES: Final = 5_000
MAX_BYTES: Final = 16 * 1024 * 1024
_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_MAGIC: Final = 0xFEEDFEED
_VERSION: Final = 2
_TRUSTED: Final = 2
# Java's default. It guards nothing: the file has only certificates.
_PASSWORD: Final = "changeit"  # noqa: S105


def trust_store_options(environ: Mapping[str, str] | None = None) -> list[str]:
    """Options of Java that make it trust what Python trusts; [] where no bundle is found."""
    certificates = list(read_certificates(bundles(os.environ if environ is None else environ)))
    if not certificates:
        return []
    content = trust_store(certificates)
    name = hashlib.sha256(content).hexdigest()[:16]
    path = cache_dir("java") / f"trust-{name}.jks"
    if not path.exists():
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        draft.write_bytes(content)
        draft.replace(path)
    return [f"-Djavax.net.ssl.trustStore={path}", "-Djavax.net.ssl.trustStoreType=JKS"]


def bundles(environ: Mapping[str, str]) -> Iterator[Path]:
    """Files of certificates in PEM: those of SSL_CERT_FILE, else those of the system."""
    named = environ.get("SSL_CERT_FILE")
    if named:
        yield Path(named)
        return
    for name in (ssl.get_default_verify_paths().cafile, *SYSTEM_BUNDLES):
        if name and Path(name).is_file():
            yield Path(name)
            return


def read_certificates(paths: Iterable[Path]) -> Iterator[bytes]:
    """Each certificate once, in DER. What cannot be read or decoded is left out."""
    seen: set[bytes] = set()
    for path in paths:
        try:
            with path.open("rb") as file:
                text = file.read(MAX_BYTES)
        except OSError:
            continue
        for block in _PEM.findall(text):
            try:
                certificate = ssl.PEM_cert_to_DER_cert(block.decode("ascii"))
            except ValueError:
                continue
            if certificate not in seen and len(seen) < MAX_CERTIFICATES:
                seen.add(certificate)
                yield certificate


def trust_store(certificates: Iterable[bytes]) -> bytes:
    """A JKS of trusted certificates, without dates, so that equal ones are equal files."""
    entries = [
        struct.pack(">I", _TRUSTED)
        + _text(f"authority-{number}")
        + struct.pack(">q", 0)
        + _text("X.509")
        + struct.pack(">I", len(certificate))
        + certificate
        for number, certificate in enumerate(certificates)
    ]
    body = struct.pack(">III", _MAGIC, _VERSION, len(entries)) + b"".join(entries)
    salted = _PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body
    return body + hashlib.sha1(salted, usedforsecurity=False).digest()


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">H", len(encoded)) + encoded
