"""Certificates and keys as PEM files, loaded once before a connection needs them.

A library would fail at the first handshake, in OpenSSL's own words, or ask the terminal for the
password of a key. Every failure is an OSError with the reason in `strerror`.
"""

from __future__ import annotations

import errno
import ssl
from pathlib import Path

from tidemark.settings.files import check_regular


def load_authorities(path: str | Path, context: ssl.SSLContext | None = None) -> None:
    """Into the context, or only to see whether the file has any."""
    check_regular(path)
    try:
        (context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)).load_verify_locations(path)
    except ssl.SSLError:
        raise OSError(
            errno.EINVAL,
            "it holds no certificate as PEM text; a Java keystore is converted by "
            "`keytool -exportcert -rfc`",
        ) from None


def load_pair(
    context: ssl.SSLContext, certificate: str | Path, key: str | Path, password: str = ""
) -> None:
    """A certificate and its key into the context, which may be in use."""
    for path in (certificate, key):
        check_regular(path)
    try:
        # Without a function, OpenSSL asks for the password at the terminal.
        context.load_cert_chain(certificate, key, lambda: password)
    except ssl.SSLError as error:
        # OpenSSL's other reasons differ between versions.
        reason = "no certificate or no key as PEM text, or the key has another password"
        if error.reason == "KEY_VALUES_MISMATCH":
            reason = "the key does not belong to the certificate"
        raise OSError(errno.EINVAL, reason) from None
    except ValueError:
        raise OSError(errno.EINVAL, "the password of the key is too long") from None
