"""The certificates and keys of a connection, loaded once before anything connects."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from tidemark.core.errors import ConfigError
from tidemark.kafka.option_names import read_option
from tidemark.settings import Connection
from tidemark.settings.files import load_authorities, load_pair


def check_tls(connection: Connection, options: Mapping[str, Any]) -> None:
    """Raises ConfigError for a file that holds no certificate or key, or not the pair."""
    for name in ("sasl_oauth_cafile", "ssl_cafile"):
        if options.get(name):
            read_option(connection, name, load_authorities, options[name])
    certificate, key = options.get("ssl_certfile"), options.get("ssl_keyfile")
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        read_option(
            connection,
            "ssl_keyfile" if key else "ssl_certfile",
            lambda path: load_pair(context, certificate, path, options.get("ssl_password", "")),
            key or certificate,
        )


def check_authorities(path: str, option: str) -> None:
    """Raises ConfigError where a file holds no certificate as PEM text."""
    try:
        load_authorities(path)
    except OSError as error:
        raise ConfigError(
            f"configuration: {option}: cannot read the file: {error.strerror}."
        ) from None
