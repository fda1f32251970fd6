"""OAUTHBEARER tokens: by client credentials (RFC 6749, 4.4), or from a file that others renew.

Mirrors OAuthBearerLoginCallbackHandler (KIP-768). The secret is read from its file for each
request, so that it can be replaced while a process runs.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl.oauth import AbstractTokenProvider

from tidemark.kafka.options import READ_HERE, read_option
from tidemark.settings import Connection
from tidemark.settings.files import read_line

TIMEOUT_SECONDS: Final = 5.0
MAX_BYTES: Final = 256 * 1024
# Of a token's life, after which it is replaced; Java's sasl.login.refresh.window.factor.
REFRESH_AFTER: Final = 0.8
# Where the answer does not say how long the token is valid.
DEFAULT_SECONDS: Final = 300.0
OPTIONS: Final = (
    *("sasl_oauth_token_url", "sasl_oauth_client_id", "sasl_oauth_client_secret_file"),
    *("sasl_oauth_scope", "sasl_oauth_cafile", "sasl_oauth_token_file"),
)


def with_token_provider(options: Mapping[str, Any]) -> dict[str, Any]:
    """kafka-python's options: a token provider in place of ours."""
    if options.get("sasl_mechanism") != "OAUTHBEARER":
        return dict(options)
    rest = {key: value for key, value in options.items() if key not in OPTIONS}
    return {**rest, "sasl_oauth_token_provider": TokenProvider(options)}


def check_oauth_files(connection: Connection, options: Mapping[str, Any]) -> None:
    """Raises ConfigError where the secret or the token cannot be sent. For `check-config` only.

    A running process asks again: others may be about to write the file.
    """
    for option in READ_HERE:
        if option in options:
            read_option(connection, option, _read, options[option])


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens for the connections of one client; used by its threads."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._token, self._renew_at = "", 0.0

    def token(self) -> str:
        """A valid token. Raises SaslAuthenticationFailedError, without a secret in its text."""
        if "sasl_oauth_token_file" in self._options:
            return _read_again(self._options, "sasl_oauth_token_file")
        with self._lock:
            now = time.monotonic()
            if now >= self._renew_at:
                self._token, seconds = self._request()
                self._renew_at = now + seconds * REFRESH_AFTER
            return self._token

    def _request(self) -> tuple[str, float]:
        url, options = self._options["sasl_oauth_token_url"], self._options
        secret = _read_again(options, "sasl_oauth_client_secret_file")
        form = {"grant_type": "client_credentials"}
        if options.get("sasl_oauth_scope"):
            form["scope"] = options["sasl_oauth_scope"]
        host = urlsplit(url).netloc.rpartition("@")[2]
        # It takes a third of the time of all imports, and few use it.
        import requests

        try:
            with requests.post(
                url,
                data=form,
                auth=(options["sasl_oauth_client_id"], secret),
                timeout=TIMEOUT_SECONDS,
                verify=options.get("sasl_oauth_cafile") or True,
                allow_redirects=False,
                stream=True,
            ) as answer:
                body = answer.raw.read(MAX_BYTES, decode_content=True)
                status = answer.status_code
        except (OSError, ValueError) as error:
            raise SaslAuthenticationFailedError(
                f"the token endpoint {host} cannot be used ({_kind(error)})"
            ) from None
        if status != 200:
            raise SaslAuthenticationFailedError(f"the token endpoint {host} answered HTTP {status}")
        return _token(body, host)


def _token(body: bytes, host: str) -> tuple[str, float]:
    """(token, seconds of its life) of an answer."""
    try:
        answer = json.loads(body)
        token, seconds = answer["access_token"], float(answer.get("expires_in", DEFAULT_SECONDS))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        token, seconds = "", 0.0
    if not (isinstance(token, str) and token and token.isascii() and token.isprintable()):
        raise SaslAuthenticationFailedError(
            f"the answer of the token endpoint {host} has no access_token"
        )
    return token, min(max(seconds, 1.0), 86_400.0)


def _read(path: str) -> str:
    return read_line(path, MAX_BYTES, pipe_seconds=TIMEOUT_SECONDS)


def _read_again(options: Mapping[str, Any], option: str) -> str:
    try:
        return _read(options[option])
    except OSError as error:
        raise SaslAuthenticationFailedError(
            f"cannot read the file of {option}: {error.strerror}"
        ) from None


def _kind(error: Exception) -> str:
    """The kind of failure; the library's text quotes the URL."""
    from requests import exceptions

    if isinstance(error, exceptions.SSLError):
        return "its TLS certificate is not trusted; set sasl_oauth_cafile"
    if isinstance(error, exceptions.Timeout):
        return f"no answer within {TIMEOUT_SECONDS:g} s"
    return "no connection"
