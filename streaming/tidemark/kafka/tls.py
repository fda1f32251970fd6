"""The certificates and keys of a connection, loaded once before anything connects.

kafka-python would fail with OpenSSL's own words at the first handshake, or ask the terminal for the
password of a key.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final

from tidemark.core.errors import ConfigError
from tidemark.settings.files import check_regular

# Not only for a wrong password: OpenSSL's reason codes differ between versions.
_UNREADABLE_KEY: Final = "the key cannot be read; check the file and client.ssl_password"


def check_tls(options: Mapping[str, Any]) -> None:
    """Raises ConfigError for a file that holds no certificate or key, or not the pair."""
    if options.get("sasl_oauth_cafile"):
        check_authorities(str(options["sasl_oauth_cafile"]), "client.sasl_oauth_cafile")
    if not str(options.get("security_protocol", "PLAINTEXT")).endswith("SSL"):
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authorities, certificate = options.get("ssl_cafile"), options.get("ssl_certfile")
    if authorities:
        check_authorities(str(authorities), "client.ssl_cafile")
    if certificate:
        _check_pair(context, str(certificate), options)


def check_authorities(path: str, option: str) -> None:
    """Raises ConfigError where a file holds no certificate as PEM text."""
    try:
        check_regular(path)
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError:
        raise ConfigError(
            f"configuration: {option}: {path} holds no certificate as PEM text; a Java keystore "
            "is converted by `keytool -exportcert -rfc`."
        ) from None
    except OSError as error:
        raise ConfigError(
            f"configuration: {option}: cannot read the file: {error.strerror}."
        ) from None


def _check_pair(context: ssl.SSLContext, certificate: str, options: Mapping[str, Any]) -> None:
    key = options.get("ssl_keyfile")
    name = "client.ssl_keyfile" if key else "client.ssl_certfile"
    try:
        # Without a function, OpenSSL asks for the password at the terminal.
        context.load_cert_chain(certificate, key, lambda: str(options.get("ssl_password") or ""))
    except ssl.SSLError as error:
        reason = (
            "the key does not belong to the certificate"
            if error.reason == "KEY_VALUES_MISMATCH"
            else f"no certificate as PEM text, or {_UNREADABLE_KEY}"
        )
        raise ConfigError(f"configuration: {name} {key or certificate}: {reason}.") from None
    except OSError as error:
        raise ConfigError(f"configuration: {name}: cannot be read: {error.strerror}.") from None
    except ValueError:
        raise ConfigError("configuration: client.ssl_password is too long.") from None
